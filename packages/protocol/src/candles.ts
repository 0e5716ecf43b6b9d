/** The lengths of the intervals that candles are made for, in seconds. A week starts on Monday, 00:00 UTC. */
export const CANDLE_SECONDS = {
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3_600,
  '4h': 14_400,
  '1d': 86_400,
  '1w': 604_800,
} as const
export type CandleInterval = keyof typeof CANDLE_SECONDS

/** 1970-01-05, the first Monday after the epoch. */
const FIRST_MONDAY = 4 * 86_400

/**
 * The prices of a token that the oracle posted in an interval: the first, highest, lowest and last, as the oracle's
 * integers, and how many they are. `start` is in Unix seconds. A candle of 0 posts repeats the price before it.
 */
export type Candle = { start: number; open: bigint; high: bigint; low: bigint; close: bigint; posts: number }

/** Returns the start of the interval that has a time; both in Unix seconds. */
export function intervalStart(time: number, interval: CandleInterval): number {
  const seconds = CANDLE_SECONDS[interval]
  const offset = interval === '1w' ? FIRST_MONDAY : 0
  return Math.floor((time - offset) / seconds) * seconds + offset
}

/** Returns the candles of an interval from shorter ones or from single posts, which are in time order. */
export function foldCandles(pieces: readonly Candle[], interval: CandleInterval): Candle[] {
  const candles: Candle[] = []
  for (const piece of pieces) {
    const start = intervalStart(piece.start, interval)
    const last = candles.at(-1)
    if (last?.start === start) {
      if (piece.high > last.high) last.high = piece.high
      if (piece.low < last.low) last.low = piece.low
      last.close = piece.close
      last.posts += piece.posts
    } else candles.push({ ...piece, start })
  }
  return candles
}

/**
 * Returns one candle for each interval from `from` to `to` (Unix seconds, inclusive). An interval without a post
 * repeats the price before it, with 0 posts; `before` is the last price before the range. Intervals before the first
 * price are left out.
 */
export function fillCandles(
  candles: readonly Candle[],
  { interval, from, to, before }: { interval: CandleInterval; from: number; to: number; before: bigint | undefined },
): Candle[] {
  const byStart = new Map(candles.map(candle => [candle.start, candle]))
  const filled: Candle[] = []
  let price = before
  for (let start = intervalStart(from, interval); start <= to; start += CANDLE_SECONDS[interval]) {
    const candle = byStart.get(start)
    if (candle) filled.push(candle)
    else if (price !== undefined) filled.push({ start, open: price, high: price, low: price, close: price, posts: 0 })
    price = candle?.close ?? price
  }
  return filled
}

const BPS = 10_000n

/**
 * Returns the change from one price to another in basis points, rounded toward zero; undefined without an earlier
 * price.
 */
export const changeBps = (before: bigint | undefined, now: bigint): number | undefined =>
  before === undefined || before === 0n ? undefined : Number(((now - before) * BPS) / before)

/**
 * Returns the volatility of candles in basis points per interval: the sample standard deviation of ln(close / close
 * before), over neighbouring candles. Undefined below two returns. Not scaled to a year.
 */
export function volatilityBps(candles: readonly Candle[]): number | undefined {
  const returns = candles.slice(1).map(({ close }, index) => Math.log(Number(close) / Number(candles[index]?.close)))
  if (returns.length < 2) return undefined
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length
  const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (returns.length - 1)
  return Math.round(Math.sqrt(variance) * Number(BPS))
}
