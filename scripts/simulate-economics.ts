import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import type { ConfigFile } from './deploy-config.ts'

// A year of owners whom luck has promoted, and who take what their agents' trades lose: they move the pool before each
// trade and execute it themselves. Amounts are USDC and rates are fractions, as floating point: these are statistics,
// not balances.

const BPS = 10_000
const FEE_UNITS = 1_000_000
const DAYS = 365
const WASTE_WINDOW_DAYS = 30
/** A vault of this size bounds the size of a trade. */
const VAULT_USDC = 1_000_000
const STEPS_PER_SESSION = 7
/** Of a trading day's variance, what comes before the market opens; a weekend brings as much again. */
const GAP_VARIANCE = 0.3
/** An owner gives gains away in at most this many round trips a day; the bounds stop it long before. */
const MAX_TRIPS_PER_DAY = 20

/** What bounds an agent on real capital, in the units of this file. */
export type Terms = {
  cap: number
  maxCap: number
  maxTrade: number
  firstLoss: number
  maxWaste: number
  maxDrawdown: number
  maxDailyLoss: number
  stop: number
  entrySlippage: number
  exitSlippage: number
  poolFee: number
  shareFees: number
}

/** Returns the terms of a configuration's first track on real capital. */
export function termsOf({ tokens, vaults, tracks }: ConfigFile): Terms {
  const [vault] = vaults
  const funded = vault?.tracks.find(
    ({ policy, capitalMode }) =>
      (capitalMode ?? tracks.find(({ trackId }) => trackId === policy.trackId)?.capitalMode) === 1,
  )
  const [token] = tokens
  if (!vault || !funded?.limits || !funded.risk || !token)
    throw new Error('The configuration has no track to simulate.')
  const { policy, limits, risk } = funded
  return {
    cap: Number(policy.initialAllocation) / 1e6,
    maxCap: Number(policy.maxAllocation) / 1e6,
    maxTrade: (VAULT_USDC * Number(policy.maxTradeSizeBps)) / BPS,
    firstLoss: risk.firstLossBps / BPS,
    maxWaste: risk.maxWasteBps / BPS,
    maxDrawdown: Number(policy.maxDrawdownBps) / BPS,
    maxDailyLoss: Number(policy.maxDailyLossBps) / BPS,
    stop: Number(policy.maxStopLossBps) / BPS,
    entrySlippage: limits.maxEntrySlippageBps / BPS,
    exitSlippage: limits.maxExitSlippageBps / BPS,
    poolFee: token.fee / FEE_UNITS,
    shareFees: Number(vault.fees.depositBps + vault.fees.withdrawBps) / BPS,
  }
}

/** The record of an agent on its track. */
export type Book = { pnl: number; peak: number; waste: number; lossPaid: number; lock: number }

/** `AllocationManager._effectiveCap`: a loss takes the same share of the cap as of the lock, a gain raises it. */
export const effectiveCap = (terms: Pick<Terms, 'cap' | 'maxCap' | 'firstLoss'>, pnl: number): number =>
  pnl < 0
    ? Math.max(0, terms.cap + pnl / (terms.firstLoss || 1))
    : Math.max(terms.cap, Math.min(terms.cap + pnl, terms.maxCap))

/** `AllocationManager.wasteOf`: what counts after `days` without a trade. */
export const fadedWaste = (waste: number, days: number): number => waste * Math.max(0, 1 - days / WASTE_WINDOW_DAYS)

/** `AllocationManager.bookBuy` and `bookWaste`: what counts once `amount` has been bought with a loss of `waste`. */
export const wasteAfterPurchase = (held: number, amount: number, waste: number, maxWaste: number): number =>
  Math.max(0, held - amount * maxWaste) + waste

/**
 * `AllocationManager._payLoss`: books a result, and pays what is lost on the track from the lock. Returns what was
 * paid.
 */
export function realize(book: Book, result: number): number {
  book.pnl += result
  book.peak = Math.max(book.peak, book.pnl)
  const due = Math.max(0, -book.pnl - book.lossPaid)
  const paid = Math.min(due, book.lock)
  book.lossPaid += due
  book.lock -= paid
  return paid
}

const mayBuy = (terms: Terms, book: Book, lossToday: number): boolean =>
  book.waste <= terms.maxWaste * (terms.cap + book.peak) &&
  book.peak - book.pnl <= terms.maxDrawdown * (terms.cap + book.peak) &&
  lossToday < terms.maxDailyLoss * terms.cap

/**
 * How an attacker plays: at which gain it sells, whether it then gives the gain away, and whether it closes over
 * weekends.
 */
type Attack = { takeProfit: number; givesAway: boolean; closesAfterWeekends: boolean }

const attacks: readonly Attack[] = [0.02, 0.11].flatMap(takeProfit =>
  [false, true].flatMap(givesAway =>
    [false, true].map(closesAfterWeekends => ({ takeProfit, givesAway, closesAfterWeekends })),
  ),
)

/** A depth of 0 is a pool that belongs to the attacker. */
type Market = { depth: number; volatility: number }

/**
 * `uncovered` is what the lock did not pay; what luck alone brings or takes, 0 on average, is left out of `attacker`.
 */
type Outcome = { attacker: number; depositors: number; uncovered: number }

/**
 * What an owner gains from a fill of `amount` that ends `slippage` below the oracle, once it has moved the pool and
 * back. Who owns the pool gets all that the fill loses, fee included, and pays nothing to move it.
 */
function taken({ poolFee }: Terms, amount: number, slippage: number, depth: number): number {
  if (depth === 0) return slippage * amount
  const pushed = Math.max(0, slippage - poolFee - amount / depth)
  // A move of x in a pool over all prices takes half of x of its depth; both ways pay the fee.
  return pushed * amount - pushed * depth * poolFee
}

/** One agent's year. `normal` draws the market's moves, which have no drift. */
function simulateYear(terms: Terms, attack: Attack, { depth, volatility }: Market, normal: () => number): Outcome {
  const lock = terms.cap * terms.firstLoss
  const book: Book = { pnl: 0, peak: 0, waste: 0, lossPaid: 0, lock }
  let gained = -lock * terms.shareFees
  let paid = 0
  let cost = 0
  let value = 0
  let lossToday = 0
  let luck = 0

  const move = (variance: number) => {
    const deviation = volatility * Math.sqrt(variance)
    const change = value * Math.expm1(deviation * normal() - deviation ** 2 / 2)
    value += change
    luck += change
  }
  /**
   * Returns how far below the oracle the owner lets a fill end: as far as it may where that pays, else what the pool
   * takes.
   */
  const slippageOf = (amount: number, most: number): number => {
    const profit = taken(terms, amount, most, depth)
    gained += Math.max(0, profit)
    return profit > 0 ? most : Math.min(most, terms.poolFee + amount / depth)
  }
  const buy = () => {
    cost = Math.min(effectiveCap(terms, book.pnl), terms.maxTrade)
    const slippage = slippageOf(cost, terms.entrySlippage)
    value = cost * (1 - slippage)
    book.waste = wasteAfterPurchase(book.waste, cost, cost * Math.max(0, slippage - terms.poolFee), terms.maxWaste)
  }
  const sell = (most: number) => {
    const slippage = slippageOf(value, most)
    const result = value * (1 - slippage) - cost
    book.waste += value * Math.max(0, slippage - terms.poolFee)
    paid += realize(book, result)
    lossToday = Math.max(0, lossToday - result)
    value = 0
    cost = 0
  }
  const sellIfDue = (isWeekend: boolean) => {
    if (value === 0) return
    if (value <= cost * (1 - terms.stop) || (isWeekend && attack.closesAfterWeekends)) sell(terms.exitSlippage)
    else if (value >= cost * (1 + attack.takeProfit)) sell(terms.entrySlippage)
  }

  for (let day = 0; day < DAYS; ++day) {
    book.waste = fadedWaste(book.waste, 1)
    if (day % 7 > 4) continue
    lossToday = 0
    move(day % 7 === 0 ? GAP_VARIANCE + 1 : GAP_VARIANCE)
    sellIfDue(day % 7 === 0)
    if (attack.givesAway) {
      for (let trip = 0; trip < MAX_TRIPS_PER_DAY && value === 0 && book.pnl > 0; ++trip) {
        if (!mayBuy(terms, book, lossToday) || taken(terms, terms.cap, terms.entrySlippage, depth) <= 0) break
        buy()
        sell(terms.entrySlippage)
      }
    }
    if (value === 0 && mayBuy(terms, book, lossToday) && effectiveCap(terms, book.pnl) >= 10) buy()
    for (let step = 0; step < STEPS_PER_SESSION; ++step) {
      move((1 - GAP_VARIANCE) / STEPS_PER_SESSION)
      sellIfDue(false)
    }
  }
  if (value !== 0) sell(terms.exitSlippage)
  return { attacker: gained - paid - luck, depositors: book.pnl + paid, uncovered: Math.max(0, -book.pnl - paid) }
}

export type Row = Market & Outcome

const DEPTHS = [5_000_000, 20_000_000, 100_000_000, 0]
const VOLATILITIES = [0.018, 0.03, 0.05]

/**
 * Returns for each market the attack that earns most, on average over `years`; each path is also played upside down.
 */
export const simulateEconomics = (terms: Terms, years: number): Row[] =>
  DEPTHS.flatMap(depth =>
    VOLATILITIES.map(volatility => {
      const market = { depth, volatility }
      const outcomes = attacks.map(attack => meanOutcome(terms, attack, market, years))
      return { ...market, ...outcomes.reduce((a, b) => (b.attacker > a.attacker ? b : a)) }
    }),
  )

function meanOutcome(terms: Terms, attack: Attack, market: Market, years: number): Outcome {
  const mean = { attacker: 0, depositors: 0, uncovered: 0 }
  for (let year = 0; year < years; ++year) {
    for (const sign of [1, -1]) {
      const outcome = simulateYear(terms, attack, market, normalDraws(year, sign))
      mean.attacker += outcome.attacker / (2 * years)
      mean.depositors += outcome.depositors / (2 * years)
      mean.uncovered += outcome.uncovered / (2 * years)
    }
  }
  return mean
}

/** Box and Muller's transformation of uniform draws. */
function normalDraws(seed: number, sign: number): () => number {
  const generator = xoroshiro128plus(seed)
  return () => {
    const radius = Math.sqrt(-2 * Math.log(1 - uniformFloat64(generator)))
    return sign * radius * Math.cos(2 * Math.PI * uniformFloat64(generator))
  }
}
