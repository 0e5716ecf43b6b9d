import {
  CANDLE_SECONDS,
  type Candle,
  type CandleInterval,
  fillCandles,
  foldCandles,
} from '@agent-trading-service/protocol/candles'
import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import { keptPostsFrom } from './delete-old-rows.ts'
import type { SnapshotReader } from './read-snapshot.ts'
import { selectCandlesOfPosts, selectPricesAt, selectStoredCandles, toCandle, toPriceAt } from './tables/candles.ts'

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
 * The candles of a range, oldest first, and whether there are older ones. `prices` are those at the requested times,
 * undefined before the first post. `postsFrom` is the time in Unix seconds from which intervals below an hour exist.
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
 * Reads the candles of a token, complete up to `asOf`. Intervals of an hour and more are stored, shorter ones come from
 * single posts. Throws HISTORY_UNAVAILABLE.
 */
export async function readCandles(
  snapshots: SnapshotReader,
  { token, interval, from, to, isFilled, pricesAt }: CandleQuery,
  head: Block,
): Promise<Candles> {
  const seconds = CANDLE_SECONDS[interval]
  const end = to + seconds - 1
  const range = { token, from, to: end }
  const isStored = seconds >= HOUR_SECONDS
  const times = [from - 1, ...pricesAt]
  const { results, facts } = await snapshots.readSnapshot(head, db => [
    selectPricesAt(
      db,
      times.map(time => ({ token, time })),
    ),
    selectCandlesOfPosts(db, range, Math.min(seconds, HOUR_SECONDS), isStored),
    ...(isStored ? [selectStoredCandles(db, range, seconds >= DAY_SECONDS ? DAY_SECONDS : HOUR_SECONDS)] : []),
  ])
  const { asOf, lagBlocks } = facts
  const [priced, ofPosts, stored] = results
  const [before, ...prices] = times.map((_, index) => toPriceAt(priced?.[index])?.price)
  const postsFrom = keptPostsFrom(Number(asOf.timestamp))
  const pieces = [...(stored ?? []), ...(ofPosts ?? [])].map(toCandle)
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
 * Reads the last price of tokens at a time in Unix seconds from the index alone, without a request to the node. Empty
 * if the index does not reach that time, or cannot be read.
 */
export async function readIndexedPrices(
  snapshots: SnapshotReader,
  tokens: readonly Address[],
  time: number,
): Promise<Map<Address, bigint>> {
  const indexed = await snapshots.readIndex(db => [
    selectPricesAt(
      db,
      tokens.map(token => ({ token, time })),
    ),
  ])
  if (indexed === undefined || indexed.cursor.timestamp < time) return new Map()
  const prices = (indexed.results[0] ?? []).map(row => toPriceAt(row)?.price)
  return new Map(
    tokens.flatMap((token, index) => {
      const price = prices[index]
      return price === undefined ? [] : [[token, price] as const]
    }),
  )
}
