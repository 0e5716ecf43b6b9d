import { HOUR_SECONDS, toSafeNumber } from './leaderboard-formulas.ts'

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

/**
 * Returns what the return of the last 30 days would be in a year, compounded daily, in parts per million; null without
 * one.
 */
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

const DAY_SECONDS = 86_400
const DRAWDOWN_DAYS = 90

const lastSecondBefore = (time: number, seconds: number) => Math.floor(time / seconds) * seconds - 1
const daysAgo = (now: number, days: number) => lastSecondBefore(now - days * DAY_SECONDS, HOUR_SECONDS)
const endsOfDays = (now: number) =>
  Array.from({ length: DRAWDOWN_DAYS }, (_, index) => lastSecondBefore(now, DAY_SECONDS) - index * DAY_SECONDS)

/**
 * Returns the times (Unix seconds) whose share prices `performanceOf` needs at a time, oldest first. `first` is the
 * hour since the epoch of the vault's first event.
 */
export function performanceTimes(now: number, first: number | undefined): number[] {
  const begin = first === undefined ? [] : [(first + 1) * HOUR_SECONDS - 1]
  const times = new Set([...begin, ...[7, 30, 90].map(days => daysAgo(now, days)), ...endsOfDays(now)])
  return [...times].filter(time => time >= 0 && time < now).sort((one, other) => one - other)
}

/** Returns how a share price has changed up to the newest one, from those at `performanceTimes`. */
export function performanceOf(points: readonly (PricedShare & { totalShares: bigint })[], newest: PricedShare) {
  const now = Number(newest.timestamp)
  const withShares = points.filter(({ totalShares }) => totalShares > 0n)
  const at = (days: number) => withShares.find(({ timestamp }) => timestamp === BigInt(daysAgo(now, days)))
  const isEndOfDay = new Set(endsOfDays(now))
  return {
    return7dPpm: returnPpmOf(at(7), newest),
    return30dPpm: returnPpmOf(at(30), newest),
    return90dPpm: returnPpmOf(at(90), newest),
    returnPpm: returnPpmOf(withShares[0], newest),
    apyPpm: apyPpmOf(at(30), newest),
    maxDrawdown90d: maxDrawdownOf([...withShares.filter(({ timestamp }) => isEndOfDay.has(Number(timestamp))), newest]),
  }
}
