import { type Hex, numberToHex, pad } from 'viem'
import { afterEach, expect, it, vi } from 'vitest'
import type { Reorg } from '../../src/history/tables/cursor.ts'
import { followNode } from '../support/followed-node.ts'

// After a reorg, replicas behind one URL change to the new branch one after the other.

const [ANCESTOR, HEAD] = [90, 100]
/** The branch of the replica that responds now, and its newest block. */
let replica = { branch: 1, head: HEAD }

const hashOf = (number: number, branch: number) =>
  pad(numberToHex(number > ANCESTOR ? branch * 1_000 + number : number))
const blockOf = (number: number) => ({
  number: numberToHex(number),
  hash: hashOf(number, replica.branch),
  parentHash: hashOf(number - 1, replica.branch),
  timestamp: numberToHex(Math.floor(Date.now() / 1_000) - HEAD + number),
})

function resultOf(method: string, [param]: unknown[]): object {
  switch (method) {
    case 'eth_chainId':
      return { result: '0x7a69' }
    case 'eth_getCode':
      return { result: '0x60' }
    case 'eth_getLogs':
      return { result: [] }
    case 'eth_getBlockByNumber': {
      const number = `${param}`.startsWith('0x') ? Number(param) : replica.head
      return { result: number > replica.head ? null : blockOf(number) }
    }
    default:
      return { error: { code: -32601, message: 'the method does not exist' } }
  }
}

afterEach(() => void vi.unstubAllGlobals())

async function startFollower() {
  const reorgs: Reorg[] = []
  const { step } = await followNode(resultOf, { startBlock: 1, onReorg: reorg => reorgs.push(reorg) })
  /** Makes steps while a replica responds, and returns the hash of the cursor. */
  async function follow(next: typeof replica, steps = 1): Promise<Hex | undefined> {
    replica = next
    let hash: Hex | undefined
    for (let made = 0; made < steps; made++) hash = (await step('head')).cursor?.hash
    return hash
  }
  await follow({ branch: 1, head: ANCESTOR }, 3)
  expect(await follow({ branch: 1, head: HEAD }, 3)).toBe(hashOf(HEAD, 1))
  return { follow, reorgs }
}

it('a reorg is one reorg, although a replica that has not noticed it responds in between', async () => {
  const { follow, reorgs } = await startFollower()
  const rolledBack = hashOf(ANCESTOR, 2)
  expect(await follow({ branch: 2, head: HEAD + 1 })).toBe(rolledBack)
  expect(await follow({ branch: 1, head: HEAD })).toBe(rolledBack)
  expect(await follow({ branch: 2, head: HEAD + 1 }, 3)).toBe(hashOf(HEAD + 1, 2))
  expect(reorgs).toMatchObject([{ ancestor: ANCESTOR, lost: HEAD }])
})

it('a chain that returns to the branch before, and goes on there, is followed', async () => {
  const { follow, reorgs } = await startFollower()
  await follow({ branch: 2, head: HEAD + 1 }, 3)
  expect(await follow({ branch: 1, head: HEAD + 5 }, 3)).toBe(hashOf(HEAD + 5, 1))
  expect(reorgs).toHaveLength(2)
})
