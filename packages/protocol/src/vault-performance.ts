import { toSafeNumber } from './leaderboard-formulas.ts'

// The formulas of docs/statistics.md, in integers that are truncated towards zero.

const PPM = 1_000_000n
/** One, in the arithmetic of the compounded return. */
const ONE = 10n ** 18n
const MONTH_DAYS = 30n
const DAYS_PER_YEAR = 365

/** A share price in USDC base units at a time in Unix seconds. */
export type PricedShare = { timestamp: bigint; sharePrice: bigint }

/** Returns the return from one share price to another in parts per million; null without an earlier one. */
export function returnPpmOf(earlier: PricedShare | undefined, { sharePrice }: PricedShare): number | null {
  if (earlier === undefined || earlier.sharePrice === 0n) return null
  return toSafeNumber(((sharePrice - earlier.sharePrice) * PPM) / earlier.sharePrice)
}

/** Returns what the return of the last 30 days would be in a year, compounded daily, in parts per million; null without one. */
export function apyPpmOf(monthAgo: PricedShare | undefined, { sharePrice }: PricedShare): number | null {
  if (monthAgo === undefined || monthAgo.sharePrice === 0n) return null
  const daily = ((sharePrice - monthAgo.sharePrice) * ONE) / monthAgo.sharePrice / MONTH_DAYS
  let growth = ONE
  for (let day = 0; day < DAYS_PER_YEAR; day++) growth = (growth * (ONE + daily)) / ONE
  return toSafeNumber(((growth - ONE) * PPM) / ONE)
}

/** Returns the deepest fall of share prices from a peak before it, oldest first; null without a fall. */
export function maxDrawdownOf(prices: readonly PricedShare[]) {
  let [peak] = prices
  let deepest: { fall: bigint; from: bigint; to: bigint } | undefined
  for (const price of prices) {
    if (peak === undefined || price.sharePrice > peak.sharePrice) peak = price
    const fall = peak.sharePrice === 0n ? 0n : ((peak.sharePrice - price.sharePrice) * PPM) / peak.sharePrice
    if (fall > (deepest?.fall ?? 0n)) deepest = { fall, from: peak.timestamp, to: price.timestamp }
  }
  return deepest === undefined ? null : { ppm: Number(deepest.fall), from: `${deepest.from}`, to: `${deepest.to}` }
}
