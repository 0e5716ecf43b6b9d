import { encodeAbiParameters, type Hex, numberToHex, pad } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Chain } from '../../src/chain/configured-chain.ts'
import { findTransaction } from '../../src/chain/find-transaction.ts'
import { readTree } from '../../src/chain/read-tree.ts'
import { createTransport } from '../../src/rpc/transport.ts'
import { ADDRESS, BLOCK_HASH, nodeReceipt } from '../support/node-receipt.ts'

// A load balancer whose replicas are at different blocks: each request may reach another one.

type Call = { id: number; method: string; params: readonly unknown[] }

const HASH = pad('0xcd')
const CHAIN_ID = 31337
const chain = {
  id: CHAIN_ID,
  rpc: createTransport(['https://pool.example']),
  contracts: { Multicall3: ADDRESS },
  tokens: {},
  memory: { priceSources: { readAt: 0, byToken: new Map() } },
} as unknown as Chain

const transaction = { hash: HASH, from: ADDRESS, to: ADDRESS, input: '0x', blockNumber: '0x7' }
const block = { number: '0x7', hash: BLOCK_HASH, timestamp: '0x64' }

/** The block that a replica shows that does not have the requested one, and does not say so. */
const OTHER_BLOCK = 9n
/** The return data of a batch of calls at a block. */
const readingAt = (block: bigint): Hex =>
  encodeAbiParameters(
    [{ type: 'tuple[]', components: [{ type: 'bool' }, { type: 'bytes' }] }],
    [[block, 100n, BigInt(CHAIN_ID), block].map(value => [true, pad(numberToHex(value))] as const)],
  )

/** What the replica that is behind answers to its first requests, by method. */
let late: Record<string, unknown> = {}

const results: Record<string, unknown> = {
  eth_getTransactionByHash: transaction,
  eth_getTransactionReceipt: nodeReceipt(HASH),
  eth_getBlockByNumber: block,
  eth_blockNumber: '0x8',
  eth_call: readingAt(7n),
}

beforeAll(() => {
  vi.stubGlobal('fetch', async (input: RequestInfo, init?: RequestInit) => {
    const { id, method } = (await new Request(input, init).json()) as Call
    const result = method in late ? late[method] : results[method]
    delete late[method]
    return Response.json({ jsonrpc: '2.0', id, result })
  })
})
afterAll(() => void vi.unstubAllGlobals())
beforeEach(() => {
  late = {}
})

it('a transaction has the time of its block, although one replica does not have the block', async () => {
  late = { eth_getBlockByNumber: null }
  expect(await findTransaction(chain, HASH)).toMatchObject({ block: { number: 7n, timestamp: 100n } })
})

it('a transaction in a block is not shown as pending, although one replica does not have its receipt', async () => {
  late = { eth_getTransactionReceipt: null }
  expect(await findTransaction(chain, HASH)).toMatchObject({ block: { number: 7n, success: true } })
})

it('a read at a block is not answered by a replica that shows another block without saying so', async () => {
  late = { eth_call: readingAt(OTHER_BLOCK) }
  expect((await readTree(chain, {}, { number: 7n, timestamp: 0n })).block.number).toBe(7n)
})

it('a read that must not go behind a block shows an older one, once the index knows that a reorg has removed that block', async () => {
  const asked: bigint[] = []
  const ancestorOf = async (block: bigint) => {
    asked.push(block)
    return 6n
  }
  expect(await readTree({ ...chain, minBlock: 8n, ancestorOf }, {})).toMatchObject({ block: { number: 7n } })
  expect(asked).toEqual([8n])
})
