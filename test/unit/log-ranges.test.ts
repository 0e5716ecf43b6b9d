import { type Hex, numberToHex, pad } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { findSettlement } from '../../src/payments/settlement-lookup.ts'
import { getLogs } from '../../src/rpc/logs.ts'
import { createTransport } from '../../src/rpc/transport.ts'

// A node that limits the range of eth_getLogs, as hosted nodes do.

type Call = { id: number; method: string; params: [LogsQuery] }
type LogsQuery = { address: Hex; topics: (Hex | Hex[] | null)[]; fromBlock: Hex; toBlock: Hex }

const HEAD = 200
const [ADDRESS, OTHER] = [numberToHex(7, { size: 20 }), numberToHex(8, { size: 20 })]
const TOPIC = pad('0x11')
const logs = [3, 40, 41, 97, 199].map((block, index) => ({
  address: ADDRESS,
  topics: [TOPIC, pad(numberToHex(index))],
  data: '0x' as const,
  blockNumber: numberToHex(block),
  blockHash: pad(numberToHex(block)),
  transactionHash: pad(numberToHex(index + 1)),
  logIndex: '0x0' as const,
}))
let maxBlocks = Number.POSITIVE_INFINITY
/** The most logs that a node returns without an error, and how many it has of each event. */
let limit = { logs: Number.POSITIVE_INFINITY, copies: 1 }
/** Sizes of the requested ranges in blocks. */
let requested: number[] = []
const rpc = createTransport(['https://node.example'])

function isSelected(log: (typeof logs)[number], { address, topics, fromBlock, toBlock }: LogsQuery): boolean {
  const block = Number(log.blockNumber)
  const matches = (given: Hex | Hex[] | null, index: number) =>
    given === null || [given].flat().includes(log.topics[index] as Hex)
  return log.address === address && topics.every(matches) && block >= Number(fromBlock) && block <= Number(toBlock)
}

function resultOf({ method, params }: Call): object {
  if (method === 'eth_blockNumber') return { result: numberToHex(HEAD) }
  if (method !== 'eth_getLogs') return { error: { code: -32601, message: 'the method does not exist' } }
  const [query] = params
  const range = Number(query.toBlock) - Number(query.fromBlock) + 1
  requested.push(range)
  if (range > maxBlocks) return { error: { code: -32005, message: 'query exceeds max block range' } }
  const selected = logs.filter(log => isSelected(log, query))
  return { result: selected.flatMap(log => Array(limit.copies).fill(log)).slice(0, limit.logs) }
}

beforeAll(() => {
  vi.stubGlobal('fetch', async (input: RequestInfo, init?: RequestInit) => {
    const request = (await new Request(input, init).json()) as Call | Call[]
    const answer = (call: Call) => ({ jsonrpc: '2.0', id: call.id, ...resultOf(call) })
    return Response.json(Array.isArray(request) ? request.map(answer) : answer(request))
  })
})
afterAll(() => void vi.unstubAllGlobals())
beforeEach(() => {
  maxBlocks = Number.POSITIVE_INFINITY
  limit = { logs: Number.POSITIVE_INFINITY, copies: 1 }
  requested = []
})

const read = (topics: (Hex | null)[] = [TOPIC], address: Hex = ADDRESS) =>
  getLogs(rpc, { address, topics }, { fromBlock: 0n, toBlock: BigInt(HEAD) })

it('logs are read in one request if the node allows it, and only those that match the filter', async () => {
  expect((await read()).map(({ blockNumber }) => blockNumber)).toEqual([3n, 40n, 41n, 97n, 199n])
  expect(requested).toEqual([HEAD + 1])
  expect(await read([TOPIC, pad('0x2')])).toMatchObject([{ blockNumber: 41n }])
  expect(await read([TOPIC], OTHER)).toEqual([])
})

it('ranges are halved until the node accepts them, and every block is read once', async () => {
  const all = await read()
  maxBlocks = 20
  requested = []
  expect(await read()).toEqual(all)
  const returned = requested.filter(range => range <= maxBlocks)
  expect(returned.reduce((sum, range) => sum + range, 0)).toBe(HEAD + 1)
  const rejected = requested.filter(range => range > maxBlocks)
  expect(new Set(rejected).size).toBe(rejected.length) // a size that was rejected is not requested again
})

it('ranges are halved too if a node returns only the first thousand logs without an error', async () => {
  limit = { logs: 1_000, copies: 600 }
  expect(await read()).toHaveLength(5 * 600)
})

it('a node that returns no logs at all counts as unreachable', async () => {
  maxBlocks = 0
  await expect(read()).rejects.toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
})

it('a settlement is looked up in ranges that the node allows', async () => {
  maxBlocks = 20
  const payment = {
    asset: ADDRESS,
    payer: OTHER,
    payTo: OTHER,
    amount: 1n,
    nonce: pad('0x99'),
    fromBlock: 0n,
    validSeconds: 3_600n,
  }
  expect(await findSettlement(rpc, [payment])).toBeUndefined()
  const returned = requested.filter(range => range <= maxBlocks)
  expect(returned.reduce((sum, range) => sum + range, 0)).toBe(HEAD + 1)
})
