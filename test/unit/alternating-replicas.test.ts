import { type Address, type Hex, numberToHex, pad } from 'viem'
import { afterEach, expect, it, vi } from 'vitest'
import { createChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createChainFollower } from '../../src/history/chain-follower.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { indexKeyOf, type Reorg } from '../../src/history/tables/cursor.ts'
import { createSqliteD1 } from '../support/sqlite-d1.ts'

// After a reorg, replicas behind one URL change to the new branch one after the other.

const [ANCESTOR, HEAD] = [90, 100]
const NAMES = ['AgentRegistry', 'VaultTrackRegistry', 'FeeManager', 'TokenRegistry', 'PriceOracle']
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
  vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
    const calls = JSON.parse(body)
    const answer = ({ id, method, params }: { id: number; method: string; params: unknown[] }) => ({
      jsonrpc: '2.0',
      id,
      ...resultOf(method, params),
    })
    return Response.json(Array.isArray(calls) ? calls.map(answer) : answer(calls))
  })
  const contracts = Object.fromEntries(NAMES.map((name, index) => [name, numberToHex(index + 1, { size: 20 })]))
  const { chain: settings, trading } = parseConfig({
    CHAIN_ID: '31337',
    START_BLOCK: '1',
    RPC_URL: 'https://node.example',
    CONTRACTS: JSON.stringify(contracts),
  })
  if (settings === undefined) expect.unreachable()
  const chain = createChain(settings, trading)
  const store = openIndexStore(createSqliteD1().db, indexKeyOf(chain))
  await store.migrate()
  const none = () => new Set<Address>()
  const named = {
    vaults: none(),
    ownerControls: none(),
    orderBooks: none(),
    routers: none(),
    oracles: none(),
    tokens: none(),
  }
  const reorgs: Reorg[] = []
  const { step } = createChainFollower({
    chain,
    store,
    listener: { onAppend() {}, onReorg: reorg => reorgs.push(reorg) },
    memory: {
      read: async () => ({ key: indexKeyOf(chain), at: Date.now(), named, rangeBlocks: 2_000 }),
      async write() {},
    },
  })
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
