import {
  CANDLE_SECONDS,
  type Candle,
  type CandleInterval,
  fillCandles,
  foldCandles,
} from '@agent-trading-service/protocol/candles'
import { decodeEvent } from '@agent-trading-service/protocol/decode-event'
import { type Address, pad } from 'viem'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { keptPostsFrom } from './delete-old-rows.ts'
import { POST_TOPICS } from './followed-events.ts'
import type { SnapshotReader } from './read-index-to-head.ts'
import {
  selectCandlesOfPosts,
  selectPricesAt,
  selectPricesOfTokens,
  selectStoredCandles,
  toCandle,
} from './tables/candles.ts'

/** Selects candles that start from `from` to `to`, both in Unix seconds. */
export type CandleQuery = {
  token: Address
  interval: CandleInterval
  from: number
  to: number
  /** Whether an interval without a post repeats the price before it. */
  isFilled: boolean
}

/**
 * The candles of a range, oldest first, and whether there are older ones. `postsFrom` is the time in Unix seconds from which
 * intervals below an hour exist.
 */
export type Candles = { candles: Candle[]; hasOlder: boolean; postsFrom: number; asOf: Block; lagBlocks: number }

/** What a range needs to be read from: intervals of an hour and more are stored, shorter ones come from single posts. */
const HOUR_SECONDS = CANDLE_SECONDS['1h']
const DAY_SECONDS = CANDLE_SECONDS['1d']

type CandleSources = { snapshots: SnapshotReader; chain: Chain }

/** Reads the candles of a token, complete up to `asOf`. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readCandles(
  { snapshots, chain }: CandleSources,
  { token, interval, from, to, isFilled }: CandleQuery,
  head: Block,
): Promise<Candles> {
  const seconds = CANDLE_SECONDS[interval]
  const end = to + seconds - 1
  const range = { token, from, to: end }
  const isStored = seconds >= HOUR_SECONDS
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [
      ...(isStored ? [selectStoredCandles(db, range, seconds >= DAY_SECONDS ? DAY_SECONDS : HOUR_SECONDS)] : []),
      selectCandlesOfPosts(db, range, Math.min(seconds, HOUR_SECONDS), isStored),
      selectPricesAt(db, token, [from - 1]),
    ],
    head: Promise.resolve(head),
    filter: postFilter(chain, token),
  })
  const indexed = results.slice(0, -1).flatMap(({ results }) => results.map(toCandle))
  const newer = await candlesOfLogs(chain, logs)
  const posts = newer.filter(({ start }) => start >= from && start <= end)
  const postsFrom = keptPostsFrom(Number(asOf.timestamp))
  const candles = foldCandles([...indexed, ...posts], interval).filter(({ start }) => isStored || start >= postsFrom)
  const before = newer.findLast(({ start }) => start < from)?.close ?? toPrice(results.at(-1)?.results[0])
  const hasOlder = before !== undefined && (isStored || from > postsFrom)
  const until = Math.min(to, Number(asOf.timestamp))
  return {
    candles: isFilled ? fillCandles(candles, { interval, from, to: until, before }) : candles,
    hasOlder,
    postsFrom,
    asOf,
    lagBlocks,
  }
}

/** Reads the last price of a token at some times in Unix seconds; undefined before the first post. Throws as `readCandles` does. */
export async function readPricesAt(
  { snapshots, chain }: CandleSources,
  token: Address,
  times: readonly number[],
  head: Block,
): Promise<(bigint | undefined)[]> {
  const { results, logs } = await snapshots.readSnapshot({
    queries: db => [selectPricesAt(db, token, times)],
    head: Promise.resolve(head),
    filter: postFilter(chain, token),
  })
  const posts = await candlesOfLogs(chain, logs)
  return times.map((time, index) => {
    return posts.findLast(({ start }) => start <= time)?.close ?? toPrice(results[0]?.results[index])
  })
}

const toPrice = (row: Record<string, unknown> | undefined): bigint | undefined =>
  typeof row?.price === 'string' ? BigInt(row.price) : undefined

/**
 * Reads the last price of tokens at a time in Unix seconds from the index alone, without a request to the node. Empty if the
 * index does not reach that time, or cannot be read.
 */
export async function readIndexedPrices(
  { snapshots }: Pick<CandleSources, 'snapshots'>,
  tokens: readonly Address[],
  time: number,
): Promise<Map<Address, bigint>> {
  const indexed = await snapshots.readIndex({ queries: db => [selectPricesOfTokens(db, tokens, time)] })
  if (indexed === undefined || indexed.cursor.timestamp < time) return new Map()
  const rows = indexed.results[0]?.results ?? []
  return new Map(
    rows.flatMap(row => {
      const price = toPrice(row)
      return price === undefined ? [] : [[row.token as Address, price] as const]
    }),
  )
}

const postFilter = ({ contracts }: Chain, token: Address) => ({
  address: [contracts.PriceOracle],
  topics: [POST_TOPICS, pad(token)],
})

/** Returns a candle for each log of a post, which starts when it was posted. */
async function candlesOfLogs(chain: Chain, logs: readonly NodeLog[]): Promise<Candle[]> {
  if (logs.length === 0) return []
  const timeOf = await readBlockTimes(chain.rpc, logs)
  return logs.map(log => {
    const { price } = decodeEvent(priceOracleAbi, log).args as { price: bigint }
    return { start: timeOf(log), open: price, high: price, low: price, close: price, posts: 1 }
  })
}
