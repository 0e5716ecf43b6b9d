import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { isPurchase, type PlayedMarket, type ReportedTrade } from './report.ts'

// Whether an agent's entries are better than chance, and what is left of its return if trading were dearer or later.
// Amounts are USDC as floats: these are statistics, not money.

/** A part of a position that was bought at one bar and sold at another, or held to the last one. */
export type Lot = { symbol: string; from: number; to: number; usdc: number }

/** Returns the index of the last bar that ends at or before a time; 0 before the first. */
function barAt({ times }: PlayedMarket, time: number): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) <= time) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

const USDC = 1e6

/** Returns the lots of an agent's trades, oldest first; what a position buys later counts from its first purchase. */
export function lotsOf(trades: readonly ReportedTrade[], market: PlayedMarket): Lot[] {
  const last = market.times.length - 1
  const positions = Map.groupBy(
    trades.filter(({ usdcAmount, tokenAmount }) => usdcAmount !== null && tokenAmount !== null),
    ({ positionId }) => positionId,
  )
  return [...positions.values()].flatMap(own => {
    const bought = own.filter(({ type }) => isPurchase(type))
    const [first] = bought
    const tokens = sum(bought, 'tokenAmount')
    if (first === undefined || tokens === 0) return []
    const cost = sum(bought, 'usdcAmount') / USDC
    const from = barAt(market, Number(first.timestamp))
    const sales = own.filter(({ type }) => !isPurchase(type))
    const held = 1 - sum(sales, 'tokenAmount') / tokens
    const lots = sales.map(sale => ({
      symbol: first.symbol,
      from,
      to: barAt(market, Number(sale.timestamp)),
      usdc: (cost * Number(sale.tokenAmount)) / tokens,
    }))
    return held > 1e-9 ? [...lots, { symbol: first.symbol, from, to: last, usdc: cost * held }] : lots
  })
}

const sum = (trades: readonly ReportedTrade[], amount: 'usdcAmount' | 'tokenAmount') =>
  trades.reduce((total, trade) => total + Number(trade[amount]), 0)

/**
 * Returns the profits in USDC of random agents: each holds as many lots of the same sizes for as many bars as the agent
 * did, but of random tokens from random bars on, and pays `costRate` of each purchase for both of its trades. So
 * exposure and turnover are the agent's, and only the choice is not.
 */
export function randomProfits(
  lots: readonly Lot[],
  market: PlayedMarket,
  { draws, seed, costRate }: { draws: number; seed: number; costRate: number },
): number[] {
  const random = xoroshiro128plus(seed)
  const below = (count: number) => Math.min(count - 1, Math.floor(uniformFloat64(random) * count))
  const prices = Object.values(market.prices).map(own => own.map(Number))
  return Array.from({ length: draws }, () =>
    lots.reduce((profit, { from, to, usdc }) => {
      const own = prices[below(prices.length)] ?? []
      const start = below(own.length - (to - from))
      const change = (own[start + to - from] ?? 0) / (own[start] ?? 1) - 1
      return profit + usdc * (change - costRate)
    }, 0),
  )
}

/** Returns the part of the random profits below the agent's; equal ones count half. */
export function rankAmong(profit: number, profits: readonly number[]): number {
  const below = profits.filter(each => each < profit).length
  const equal = profits.filter(each => each === profit).length
  return profits.length === 0 ? 0.5 : (below + equal / 2) / profits.length
}

/** Returns what a profit in USDC would lose if each trade paid `bps` more, as a higher fee or slippage. */
export const costOf = (trades: readonly ReportedTrade[], bps: number): number =>
  (trades.reduce((total, { usdcAmount }) => total + Number(usdcAmount ?? 0), 0) / USDC) * (bps / 10_000)

/**
 * Returns what a profit in USDC would lose if the agent's own trades came `bars` later, at the prices of then. Exits
 * and orders that the keeper executes stay where they are.
 */
export function costOfDelay(trades: readonly ReportedTrade[], market: PlayedMarket, bars: number): number {
  const last = market.times.length - 1
  return trades.reduce((total, { type, source, symbol, timestamp, usdcAmount }) => {
    if (source !== 'intent' || usdcAmount === null) return total
    const bar = barAt(market, Number(timestamp))
    const [now, later] = [bar, Math.min(last, bar + bars)].map(index => Number(market.prices[symbol]?.[index] ?? 0n))
    if (!now || !later) return total
    const dearer = (Number(usdcAmount) / USDC) * (later / now - 1)
    return total + (isPurchase(type) ? dearer : -dearer)
  }, 0)
}
