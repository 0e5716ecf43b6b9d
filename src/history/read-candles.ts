import {
  CANDLE_SECONDS,
  type Candle,
  type CandleInterval,
  fillCandles,
  foldCandles,
} from '@agent-trading-service/protocol/candles'
import { type Address, pad } from 'viem'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { keptPostsFrom } from './delete-old-rows.ts'
import { decodePosts, PRICE_TOPICS } from './followed-events.ts'
import type { SnapshotReader } from './read-index-to-head.ts'
import { selectCandlesOfPosts, selectPricesAt, selectStoredCandles, toCandle, toPriceAt } from './tables/candles.ts'
import { selectNamed, toNamed, toPostedPrice } from './tables/events.ts'

/** Selects candles that start from `from` to `to`, both in Unix seconds. */
export type CandleQuery = {
  token: Address
  interval: CandleInterval
  from: number
  to: number
  /** Whether an interval without a post repeats the price before it. */
  isFilled: boolean
  /** Times in Unix seconds to return the price at. */
  pricesAt: readonly number[]
}

/**
 * The candles of a range, oldest first, and whether there are older ones. `prices` are those at the requested times, undefined
 * before the first post. `postsFrom` is the time in Unix seconds from which intervals below an hour exist.
 */
export type Candles = {
  candles: Candle[]
  hasOlder: boolean
  prices: (bigint | undefined)[]
  postsFrom: number
  asOf: Block
  lagBlocks: number
}

const HOUR_SECONDS = CANDLE_SECONDS['1h']
const DAY_SECONDS = CANDLE_SECONDS['1d']

/**
 * Reads the candles of a token, complete up to `asOf`. Intervals of an hour and more are stored, shorter ones come from single
 * posts. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readCandles(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: Chain },
  { token, interval, from, to, isFilled, pricesAt }: CandleQuery,
  head: Block,
): Promise<Candles> {
  const seconds = CANDLE_SECONDS[interval]
  const end = to + seconds - 1
  const range = { token, from, to: end }
  const isStored = seconds >= HOUR_SECONDS
  const times = [from - 1, ...pricesAt]
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [
      selectPricesAt(
        db,
        times.map(time => ({ token, time })),
      ),
      selectCandlesOfPosts(db, range, Math.min(seconds, HOUR_SECONDS), isStored),
      ...(isStored ? [selectStoredCandles(db, range, seconds >= DAY_SECONDS ? DAY_SECONDS : HOUR_SECONDS)] : []),
      selectNamed(db, chain),
    ],
    head: Promise.resolve(head),
    filter: ({ results }) => {
      const { oracles } = toNamed(chain, results.at(-1))
      const { TokenRegistry } = chain.contracts
      return {
        address: [TokenRegistry, ...oracles],
        topics: [PRICE_TOPICS, [token, ...oracles].map(topic => pad(topic))],
      }
    },
  })
  const [priced, ofPosts, stored] = results.slice(0, -1).map(({ results }) => results)
  const newer = await candlesOfLogs(chain, toNamed(chain, results.at(-1)).oracles, logs)
  const [before, ...prices] = times.map(
    (time, index) => newer.findLast(({ start }) => start <= time)?.close ?? toPriceAt(priced?.[index])?.price,
  )
  const postsFrom = keptPostsFrom(Number(asOf.timestamp))
  const pieces = [
    ...[...(stored ?? []), ...(ofPosts ?? [])].map(toCandle),
    ...newer.filter(({ start }) => start >= from && start <= end),
  ]
  const candles = foldCandles(pieces, interval).filter(({ start }) => isStored || start >= postsFrom)
  const until = Math.min(to, Number(asOf.timestamp))
  return {
    candles: isFilled ? fillCandles(candles, { interval, from, to: until, before }) : candles,
    hasOlder: before !== undefined && (isStored || from > postsFrom),
    prices,
    postsFrom,
    asOf,
    lagBlocks,
  }
}

/**
 * Reads the last price of tokens at a time in Unix seconds from the index alone, without a request to the node. Empty if the
 * index does not reach that time, or cannot be read.
 */
export async function readIndexedPrices(
  snapshots: SnapshotReader,
  tokens: readonly Address[],
  time: number,
): Promise<Map<Address, bigint>> {
  const indexed = await snapshots.readIndex({
    queries: db => [
      selectPricesAt(
        db,
        tokens.map(token => ({ token, time })),
      ),
    ],
  })
  if (indexed === undefined || indexed.cursor.timestamp < time) return new Map()
  const prices = (indexed.results[0]?.results ?? []).map(row => toPriceAt(row)?.price)
  return new Map(
    tokens.flatMap((token, index) => {
      const price = prices[index]
      return price === undefined ? [] : [[token, price] as const]
    }),
  )
}

/** Returns a candle for each log of a post, which starts when it was posted. */
async function candlesOfLogs(chain: Chain, oracles: readonly Address[], logs: readonly NodeLog[]): Promise<Candle[]> {
  if (logs.length === 0) return []
  const posts = decodePosts(chain, oracles, logs, await readBlockTimes(chain.rpc, logs)).map(toPostedPrice)
  return posts.map(({ timestamp, price }) => ({
    start: timestamp,
    open: price,
    high: price,
    low: price,
    close: price,
    posts: 1,
  }))
}
