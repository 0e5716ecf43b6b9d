import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { CANDLE_SECONDS, type CandleInterval } from '@agent-trading-service/protocol/candles'
import { parseAbiItem } from 'viem'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { chain } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { node } from '../support/history-oracle.ts'
import { candlesOfPosts, toCandles } from '../support/logged-figures.ts'
import { reorgChain } from '../support/reorg-chain.ts'
import { randomOf } from '../support/seeded-random.ts'
import { call, deployment, request } from '../support/surfaces.ts'

// Posts at random times, with a reorg. What the service serves must equal what the logs of the oracle say.

const POSTS = inject('isLong') ? 600 : 40
const { accounts, contracts, tokens } = deployment
const token = tokens.NVDA as `0x${string}`
const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
const random = randomOf(7)
const intervals = Object.keys(CANDLE_SECONDS) as CandleInterval[]
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
let initialPrice = 0n

const postPrice = (price: bigint) =>
  chain.send(accounts.priceSetter, { ...oracle, functionName: 'setPrice', args: [token, price] })
const forcePrice = (price: bigint) =>
  chain.send(accounts.admin, { ...oracle, functionName: 'forcePrice', args: [token, price] })
const heldPrice = async () => (await node.readContract({ ...oracle, functionName: 'peekPrice', args: [token] }))[0]

async function postAtRandomTimes(posts: number) {
  let price = await heldPrice()
  for (let post = 0; post < posts; post++) {
    await chain.increaseTime(random.pick([20, 45, 300, 2_000, 9_000, 50_000]))
    price += BigInt(random.integer(-2_000_000, 2_000_000) * 10)
    await postPrice(price)
  }
}

/** The candles of a token, made in the simplest way: from all posts that the chain has. */
async function candlesOfChain(interval: CandleInterval): Promise<Map<number, Body>> {
  const logs = await node.getLogs({
    address: contracts.PriceOracle,
    event: parseAbiItem('event PriceUpdated(address indexed asset, int256 price, uint64 observedAt, uint80 roundId)'),
    args: { asset: token },
    fromBlock: 0n,
  })
  const posts = logs.map(async ({ blockNumber, args }) => {
    const { timestamp } = await node.getBlock({ blockNumber })
    return { timestamp: Number(timestamp), price: args.price as bigint }
  })
  return candlesOfPosts(await Promise.all(posts), interval)
}

/** Reads all pages, and returns the candles as `candlesOfChain` does. */
async function servedCandles(interval: CandleInterval, limit: number): Promise<Map<number, Body>> {
  const pages: Body[] = []
  let cursor: string | undefined
  do {
    const { status, body } = await call('getCandles', { symbol: 'NVDA', interval, limit, ...(cursor && { cursor }) })
    expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
    pages.unshift(body)
    cursor = body.nextCursor ?? undefined
  } while (cursor !== undefined)
  return new Map(pages.flatMap(page => [...toCandles(page)]))
}

async function expectCandlesOfChain(limit: number) {
  for (const interval of intervals)
    expect(await servedCandles(interval, limit), interval).toEqual(await candlesOfChain(interval))
}

beforeAll(async () => {
  initialPrice = await heldPrice()
})

afterAll(() => forcePrice(initialPrice))

it('candles of every interval equal the posts on the chain, whether they are stored, indexed or newer than the index', async () => {
  await forcePrice(await heldPrice()) // one post, although the oracle emits two events
  await postAtRandomTimes(POSTS)
  await expectCandlesOfChain(1_000)
  // The posts become final, and are added to the stored candles.
  await chain.increaseTime(3_600)
  await node.request({ method: 'anvil_mine', params: ['0x80', '0x1'] } as never)
  await indexer().wake() // only an object that runs can be evicted, and a new one asks for finality at once
  await evictDurableObject(indexer())
  await indexer().fold()
  const { done } = (await env.HISTORY.prepare('SELECT candles_to AS done FROM cursor').first<{ done: number }>()) ?? {}
  expect(done).toBeGreaterThan(0)
  await postAtRandomTimes(5)
  await expectCandlesOfChain(1_000)
  // Also where a page starts in the hour of a stored post.
  for (const start of (await candlesOfChain('1m')).keys()) {
    const { body } = await call('getCandles', { symbol: 'NVDA', interval: '1m', from: `${start}`, to: `${start}` })
    expect(body.candles.t).toEqual([`${start}`])
  }
})

it('candles follow a reorg', async () => {
  await postAtRandomTimes(3)
  await indexer().catchUp()
  await reorgChain(Number(await node.getBlockNumber({ cacheTime: 0 })) - 4)
  await postAtRandomTimes(2)
  await expectCandlesOfChain(1_000)
  expect(await servedCandles('1h', 150)).toEqual(await candlesOfChain('1h'))
})

it('an interval without a post is left out, and repeats the price before it if it is filled', async () => {
  await chain.increaseTime(3 * 3_600)
  await postPrice(await heldPrice())
  const bare = (await call('getCandles', { symbol: 'NVDA', interval: '15m', limit: 8 })).body
  const filled = (await call('getCandles', { symbol: 'NVDA', interval: '15m', limit: 8, fill: 'previous' })).body
  expect(bare.candles.n).not.toContain(0)
  const { t, o, c, n } = filled.candles
  expect(t).toHaveLength(8)
  const empty = t.flatMap((_: string, index: number) => (index > 0 && n[index] === 0 ? [index] : []))
  expect(empty.length).toBeGreaterThan(0)
  for (const index of empty) expect([o[index], c[index]]).toEqual([c[index - 1], c[index - 1]])
})

it('the change over an hour, a day and a week compares with the price at that time', async () => {
  const price = ((await heldPrice()) / 100n) * 100n // a percent of it is a whole number
  await postPrice(price)
  await chain.increaseTime(6 * 86_400)
  await postPrice((price * 102n) / 100n)
  await chain.increaseTime(2 * 86_400)
  await postPrice((price * 101n) / 100n)
  const { body } = await call('getCandles', { symbol: 'NVDA' })
  expect(body.change).toEqual({ hour: -98, day: -98, week: 100 })
  await indexer().catchUp()
  const [{ prices }, { tokens }] = [
    (await call('getPrices')).body,
    (await call('listVaultTokens', { id: 'genesis' })).body,
  ]
  expect(prices.NVDA.change24hBps).toBe(-98)
  expect(tokens.find(({ symbol }: Body) => symbol === 'NVDA').change24hBps).toBe(-98)
})

it('candles of an unknown symbol, a reversed range and too many intervals are refused', async () => {
  expect((await call('getCandles', { symbol: 'NVDX' })).body.code).toBe('UNKNOWN_SYMBOL')
  expect((await call('getCandles', { symbol: 'NVDA', from: '200', to: '100' })).body.code).toBe('INVALID_REQUEST')
  expect((await call('getCandles', { symbol: 'NVDA', limit: 1_001 })).body.code).toBe('INVALID_REQUEST')
  expect((await call('getCandles', { symbol: 'NVDA', interval: '2h' })).body.code).toBe('INVALID_REQUEST')
})

it('candles are also Markdown, with their changes in one sentence and the empty intervals counted', async () => {
  const { body } = await call('getCandles', { symbol: 'NVDA', interval: '15m', limit: 8 })
  const { t, o, h, l, c, n } = body.candles
  const response = await request('/prices/NVDA/candles?interval=15m&limit=8&format=md')
  const [title, moves, gaps, table] = (await response.text()).split('\n\n')
  expect([response.headers.get('content-type'), title]).toEqual(['text/markdown; charset=utf-8', '# NVDA, 15m'])
  expect(moves).toContain(`Last price ${c.at(-1)} US dollars. Change over 1 h`)
  expect(gaps).toMatch(new RegExp(`^${(Number(t.at(-1)) - Number(t[0])) / 900 + 1 - t.length} intervals`))
  const rows = table
    ?.split('\n')
    .slice(2)
    .map(row =>
      row
        .split('|')
        .slice(2, -1)
        .map(cell => cell.trim()),
    )
  expect(rows).toEqual(t.map((_: string, row: number) => [o[row], h[row], l[row], c[row], `${n[row]}`]))
  for (const [accept, type] of [
    ['text/markdown;q=0.5, text/csv', 'text/csv'],
    ['text/csv;q=0.5, text/markdown', 'text/markdown'],
    ['text/csv;q=0.5, application/json', 'application/json'],
  ] as const) {
    const { headers } = await request('/prices/NVDA/candles', { headers: { accept } })
    expect(headers.get('content-type')).toContain(type)
  }
})

it('candles are also CSV, one row per candle', async () => {
  const response = await (await request('/prices/NVDA/candles?interval=1d&format=csv')).text()
  const [header, first] = response.split('\r\n')
  expect(header).toBe('t,o,h,l,c,n')
  expect(first).toMatch(/^\d+,[\d.]+,[\d.]+,[\d.]+,[\d.]+,\d+$/)
})
