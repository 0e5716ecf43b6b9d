import { numberToHex, pad } from 'viem'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { isHalted } from '../../src/chain/halted-chain.ts'
import { compareNodes } from '../../src/rpc/compare-nodes.ts'
import { blockRequest, callRequest, chainIdRequest, receiptRequest, toHeader } from '../../src/rpc/requests.ts'
import { createTransport } from '../../src/rpc/transport.ts'
import { ADDRESS, nodeReceipt } from '../support/node-receipt.ts'

// A pool of nodes that answer at once and correctly, but some of them from an old block.

type Call = { id: number; method: string; params: readonly unknown[] }
type Head = { number: number; timestamp: number }
/** A node, or a load balancer over several, which answer in turn. The receipt of `HASH` is in block 105. */
type Pool = { heads: Head[]; turn: number; isDown?: boolean; requests: string[] }

const HASH = pad('0xcd')
const START = 1_900_000_000
let pools: Record<string, Pool> = {}
let makesBlocksOnDemand = false

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: START * 1_000 })
  pools = {}
  makesBlocksOnDemand = false
  vi.stubGlobal('fetch', async (input: string, init: RequestInit) => {
    const pool = pools[new URL(input).hostname]
    if (pool === undefined || pool.isDown) throw new Error('connection refused')
    const body = JSON.parse(init.body as string) as Call | Call[]
    const head = pool.heads[pool.turn++ % pool.heads.length] as Head
    const replies = [body]
      .flat()
      .map(({ id, method, params }) => ({ jsonrpc: '2.0', id, result: reply(pool, head, method, params) }))
    return Response.json(Array.isArray(body) ? replies : replies[0])
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function reply({ requests }: Pool, head: Head, method: string, [param]: readonly unknown[]): unknown {
  requests.push(method)
  if (method === 'eth_chainId') return '0x7a69'
  if (method === 'eth_call') return pad(numberToHex(head.number))
  if (method === 'eth_getTransactionReceipt')
    return head.number < 105 ? null : { ...nodeReceipt(HASH), blockNumber: '0x69' }
  const number = param === 'latest' || param === 'finalized' ? head.number : Number(param)
  return number > head.number
    ? null
    : { number: numberToHex(number), hash: HASH, timestamp: numberToHex(head.timestamp) }
}

/** Starts nodes and returns a transport to them in this order. */
function connect(...names: (readonly [string, ...Head[]])[]) {
  for (const [name, ...heads] of names) pools[name] = { heads, turn: 0, requests: [] }
  const rpc = createTransport(
    names.map(([name]) => `http://${name}`),
    { chainId: 31_337, timeoutMs: 1_000, makesBlocksOnDemand },
  )
  const newest = async () => Number((await rpc.read(blockRequest('latest')))?.number)
  return { rpc, newest }
}

const at = (number: number, timestamp = START): Head => ({ number, timestamp })
const call = callRequest({ to: ADDRESS, data: '0x' })
const called = async (rpc: ReturnType<typeof createTransport>) => Number((await rpc.call(call)).result)

/** Lets seconds pass in which a node makes a block each second. */
function pass(seconds: number, ...growing: string[]) {
  vi.setSystemTime(Date.now() + seconds * 1_000)
  for (const name of growing)
    for (const head of pools[name]?.heads ?? []) Object.assign(head, at(head.number + seconds, Date.now() / 1_000))
}
const requestsOf = (name: string) => pools[name]?.requests.length ?? 0

it('a node whose newest block is old is replaced by one with a newer block, for reads, calls and batches', async () => {
  const { rpc, newest } = connect(['frozen', at(100, START - 60)], ['live', at(160)])
  expect(await newest()).toBe(160)
  expect(await called(rpc)).toBe(160)
  const [{ result }] = await rpc.batch([blockRequest('latest')])
  expect(Number(result?.number)).toBe(160)
  const before = requestsOf('frozen')
  await newest()
  expect(requestsOf('frozen')).toBe(before)
})

it('a node that freezes while it is in use is replaced within seconds', async () => {
  const { newest } = connect(['first', at(100)], ['second', at(100)])
  expect(await newest()).toBe(100)
  pass(5, 'second')
  expect(await newest()).toBe(105)
})

it('a node that has failed lately is asked too, because it may be the only one that has not stopped', async () => {
  const { newest } = connect(['live', at(100)], ['frozen', at(100)])
  const live = pools.live as Pool
  live.isDown = true
  for (const seconds of [0, 3, 5]) {
    pass(seconds, 'live')
    expect(await newest()).toBe(100)
  }
  live.isDown = false
  pass(4, 'live')
  expect(await newest()).toBe(112)
})

it('a frozen node in second place changes nothing, and is not asked', async () => {
  const { newest } = connect(['live', at(100)], ['frozen', at(40, START - 60)])
  expect(await newest()).toBe(100)
  pass(1, 'live')
  expect(await newest()).toBe(101)
  expect(requestsOf('frozen')).toBe(0)
})

it('the missing receipt of a node that froze is not taken for the truth', async () => {
  const { rpc, newest } = connect(['first', at(100)], ['second', at(100)])
  await newest()
  pass(5, 'second')
  const [{ result }] = await rpc.batch([receiptRequest(HASH)])
  expect(result).toMatchObject({ transactionHash: HASH })
  expect(await rpc.read(receiptRequest(HASH))).toMatchObject({ transactionHash: HASH })
})

it('a missing receipt is not taken for the truth because its node keeps showing the same block', async () => {
  const { rpc, newest } = connect(['first', at(100)], ['second', at(100)])
  await newest()
  pass(1)
  expect(await newest()).toBe(100)
  Object.assign(pools.second?.heads[0] as Head, at(105, START + 1))
  pass(0.5)
  expect(await rpc.read(receiptRequest(HASH))).toMatchObject({ transactionHash: HASH })
})

it('a transport that has seen no block yet does not believe a missing receipt without comparing the nodes', async () => {
  const { rpc } = connect(['frozen', at(100, START - 60)], ['live', at(160)])
  expect(await rpc.read(receiptRequest(HASH))).toMatchObject({ transactionHash: HASH })
})

it('a node that was frozen is first again once it has caught up', async () => {
  const { newest } = connect(['first', at(100)], ['second', at(100)])
  await newest()
  pass(5, 'second')
  expect(await newest()).toBe(105)
  Object.assign(pools.first?.heads[0] as Head, at(105, START + 5))
  pass(15, 'first', 'second')
  await newest()
  const before = requestsOf('second')
  pass(1, 'first', 'second')
  expect(await newest()).toBe(121)
  expect(requestsOf('second')).toBe(before)
})

it('one URL that leads to a frozen node and a live one in turn shows no old state', async () => {
  const frozen = at(40, START - 60)
  const { rpc, newest } = connect(['pool', frozen, at(100)])
  for (let second = 1; second <= 6; second++) {
    expect(await newest()).toBe(99 + second)
    const [{ result }] = await rpc.batch([blockRequest('latest'), chainIdRequest])
    expect(Number(result?.number)).toBe(99 + second)
    pass(1, 'pool')
    Object.assign(frozen, at(40, START - 60))
  }
})

it('a quiet chain is not taken for a frozen node, and comparing its nodes costs one request in ten seconds', async () => {
  const { rpc, newest } = connect(['first', at(100, START - 600)], ['second', at(100, START - 600)])
  for (let second = 0; second < 20; second++) {
    expect(await newest()).toBe(100)
    expect(await called(rpc)).toBe(100)
    pass(1)
  }
  expect(pools.second?.requests.filter(method => method === 'eth_getBlockByNumber')).toHaveLength(2)
  expect(pools.second?.requests).not.toContain('eth_call')
})

it('on a quiet chain, a node that lacks the next block is replaced within ten seconds', async () => {
  const { newest } = connect(['frozen', at(100, START - 600)], ['live', at(100, START - 600)])
  expect(await newest()).toBe(100)
  Object.assign(pools.live?.heads[0] as Head, at(101))
  pass(10)
  expect(await newest()).toBe(101)
})

it('a single node of a quiet chain is used as it is', async () => {
  makesBlocksOnDemand = true
  const { rpc, newest } = connect(['only', at(100, START - 600)])
  for (let second = 0; second < 20; second++) {
    expect(await newest()).toBe(100)
    expect((await rpc.batch([receiptRequest(HASH)]))[0].result).toBeNull()
    pass(1)
  }
  expect(requestsOf('only')).toBe(40)
})

it('a chain that was rewound is read from its new head at once, because all nodes show it', async () => {
  const { newest } = connect(['first', at(100)], ['second', at(100)])
  expect(await newest()).toBe(100)
  pass(2)
  for (const name of ['first', 'second']) Object.assign(pools[name]?.heads[0] as Head, at(90, START - 10))
  expect(await newest()).toBe(90)
  expect(['first', 'second'].map(requestsOf)).toEqual([3, 2])
})

it('on a chain with a block every twelve seconds, a head of that age is new', async () => {
  const { newest } = connect(['first', at(100)], ['second', at(100)])
  await newest()
  for (let block = 101; block < 110; block++) {
    vi.setSystemTime(Date.now() + 12_000)
    Object.assign(pools.first?.heads[0] as Head, at(block, Date.now() / 1_000))
    await newest()
    const before = requestsOf('second')
    vi.setSystemTime(Date.now() + 11_000)
    expect(await newest()).toBe(block)
    expect(requestsOf('second')).toBe(before)
    vi.setSystemTime(Date.now() - 11_000)
  }
})

it('while the newer node is down, a frozen one is refused for a minute instead of going back in time', async () => {
  const { rpc, newest } = connect(['frozen', at(100, START - 60)], ['live', at(160)])
  expect(await newest()).toBe(160)
  ;(pools.live as Pool).isDown = true
  await expect(newest()).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
  await expect(called(rpc)).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
  pass(61)
  expect(await newest()).toBe(100)
})

it('a chain whose nodes all stopped a minute ago is halted, and one with new blocks is not, whatever the clock says', async () => {
  const { rpc } = connect(['first', at(100)], ['second', at(100)])
  const isHaltedNow = async (makesBlocksOnDemand = false) => {
    const { number, timestamp } = toHeader(await rpc.read(blockRequest('latest'))) ?? { number: 0, timestamp: 0 }
    return isHalted({ rpc, makesBlocksOnDemand }, { number: BigInt(number), timestamp: BigInt(timestamp) })
  }
  expect(await isHaltedNow()).toBe(false)
  pass(61)
  expect(await isHaltedNow()).toBe(true)
  expect(await isHaltedNow(true)).toBe(false)
  Object.assign(pools.second?.heads[0] as Head, at(101, START - 600))
  pass(15)
  await isHaltedNow()
  for (const name of ['first', 'second']) Object.assign(pools[name]?.heads[0] as Head, at(102, START - 599))
  expect(await isHaltedNow()).toBe(false)
})

it('a node that shows a block from the future is not believed, whatever the order, and is named', async () => {
  for (const names of [
    ['liar', 'live'],
    ['live', 'liar'],
  ] as const) {
    const heads = { liar: at(900, START + 86_400), live: at(100) }
    const { rpc, newest } = connect(...names.map(name => [name, heads[name]] as const))
    for (let second = 0; second < 3; second++) {
      expect(await newest()).toBe(100 + second)
      expect(await called(rpc)).toBe(100 + second)
      pass(1, 'live')
    }
    const verdicts = new Map((await compareNodes(rpc, 31_337)).map(({ node, problem }) => [node, problem]))
    expect(verdicts.get('liar')).toBe('shows a block that is 86397 seconds in the future')
    expect(verdicts.get('live')).toBeUndefined()
    vi.setSystemTime(START * 1_000)
  }
})

it('blocks in the future are believed if all nodes show them, as on a chain whose time was moved', async () => {
  const { rpc, newest } = connect(['first', at(100, START + 86_400)], ['second', at(100, START + 86_400)])
  expect(await newest()).toBe(100)
  expect((await compareNodes(rpc, 31_337)).map(({ problem }) => problem)).toEqual([undefined, undefined])
})

it('a node that is passed over is named as behind, by blocks and seconds', async () => {
  const { rpc } = connect(['frozen', at(100, START - 10)], ['live', at(110)])
  expect((await compareNodes(rpc, 31_337)).map(({ problem }) => problem)).toEqual([
    'is 10 blocks (10 seconds) behind the others',
    undefined,
  ])
})
