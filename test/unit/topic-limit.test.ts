import { type Hex, numberToHex, pad } from 'viem'
import { afterEach, expect, it, vi } from 'vitest'
import { FOLLOWED_TOPICS } from '../../src/history/followed-events.ts'
import { isTopicLimit } from '../../src/rpc/log-range-size.ts'
import { followNode } from '../support/followed-node.ts'

// A node that limits the topics of a log filter, as some proxies do.

const HEAD = 3_000
const MAX_TOPICS = 10

afterEach(() => void vi.unstubAllGlobals())

it.each([
  ['exceed max topics', true],
  ['too many topics in the filter, the limit is 4', true],
  ['query exceeds max block range 100000', false],
])('the error "%s" is one about topics: %s', (message, isOne) => {
  expect(isTopicLimit(message)).toBe(isOne)
})

it('a fresh index behind a node that limits topics reads every event in several filters', async () => {
  const ranges = new Map<Hex, number>()
  const blockAt = (number: number) => ({
    number: numberToHex(number),
    hash: pad(numberToHex(number)),
    parentHash: pad(numberToHex(number - 1)),
    timestamp: numberToHex(1_700_000_000 + 12 * number),
  })
  const resultOf = (method: string, params: unknown[]): object => {
    switch (method) {
      case 'eth_chainId':
        return { result: '0x7a69' }
      case 'eth_getCode':
        return { result: '0x60' }
      case 'eth_getBlockByNumber':
        return {
          result: blockAt(typeof params[0] === 'string' && params[0].startsWith('0x') ? Number(params[0]) : HEAD),
        }
      case 'eth_getLogs': {
        const [{ topics, toBlock }] = params as [{ topics: [Hex[]]; toBlock: Hex }]
        if (topics[0].length > MAX_TOPICS) return { error: { code: -32602, message: 'exceed max topics' } }
        for (const topic of topics[0]) ranges.set(topic, Number(toBlock))
        return { result: [] }
      }
      default:
        return { error: { code: -32601, message: 'the method does not exist' } }
    }
  }
  const follower = await followNode(resultOf)
  let step = await follower.step('settled')
  for (let steps = 0; step.cursor === undefined && steps < 20; steps++) step = await follower.step('settled')
  expect(step.cursor).toMatchObject({ block: 1_999 })
  expect([...ranges.keys()].toSorted()).toEqual(FOLLOWED_TOPICS.toSorted())
})
