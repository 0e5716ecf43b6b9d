import { expect, test } from 'vitest'

// A model of agents without skill: prices without drift, and owners who take what the limits leave them. The contracts'
// own rules are played in contracts/test/findings/Skin.t.sol; here 4,000 agents show what luck is worth.

const AGENTS = 4_000
const CAP = 50_000
const FEE = 1
const HOUR_VOLATILITY = 0.006
const DRAWDOWN_LIMIT = 0.1
const COST_PER_SALE = 0.02
/** What the owner's own two swaps around each sale pay to the pool. */
const POOL_FEES = 0.001
const TRACK_BUDGET = 0.03
const FIRST_LOSS = 0.14

/** Returns numbers of a standard normal distribution, the same ones in every run. */
function normals(seed: number): () => number {
  let state = seed
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state + 1) / 2 ** 32
  }
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
}

/** Buys once, stops out at -50 % and sells at +1.67 %; returns whether that is reached within a month. */
function passesOnPaper(next: () => number): boolean {
  let price = 1
  for (let hour = 0; hour < 30 * 24; hour++) {
    price *= Math.exp(HOUR_VOLATILITY * next() - HOUR_VOLATILITY ** 2 / 2)
    if (price >= 1.0167) return true
    if (price <= 0.5) return false
  }
  return false
}

/**
 * Trades the whole cap once a day on real capital and gives a part of each sale to the owner's pool. Returns what the
 * owner took, and the loss that its locked shares pay: the deepest that the record ever stood below zero.
 */
function tradesRealCapital(next: () => number, { hasBudget }: { hasBudget: boolean }) {
  let pnl = 0
  let peak = 0
  let deepest = 0
  let given = 0
  let sales = 0
  for (let day = 0; day < 90; day++) {
    if (peak - pnl > CAP * DRAWDOWN_LIMIT) break
    if (hasBudget && given >= CAP * TRACK_BUDGET) break
    const moved = CAP * (Math.exp(HOUR_VOLATILITY * 2 * next()) - 1)
    sales++
    given += CAP * COST_PER_SALE
    pnl += moved - CAP * COST_PER_SALE
    peak = Math.max(peak, pnl)
    deepest = Math.max(deepest, -pnl)
  }
  return { taken: given - sales * CAP * POOL_FEES, paid: Math.min(deepest, CAP * FIRST_LOSS) }
}

function profitOfOwners(hasSkin: boolean): { promoted: number; profit: number } {
  const next = normals(7)
  let promoted = 0
  let profit = 0
  for (let agent = 0; agent < AGENTS; agent++) {
    profit -= FEE
    if (!passesOnPaper(next)) continue
    promoted++
    const { taken, paid } = tradesRealCapital(next, { hasBudget: hasSkin })
    profit += taken - (hasSkin ? paid : 0)
  }
  return { promoted, profit }
}

test('luck promotes most of 4,000 agents without skill, and their owners gain a fortune without first-loss capital', () => {
  const { promoted, profit } = profitOfOwners(false)
  expect(promoted / AGENTS).toBeGreaterThan(0.7)
  expect(profit / promoted).toBeGreaterThan(4_000)
})

test('with first-loss capital and a budget of execution cost, the owners of 4,000 lucky agents lose money', () => {
  const { promoted, profit } = profitOfOwners(true)
  expect(promoted / AGENTS).toBeGreaterThan(0.7)
  expect(profit).toBeLessThanOrEqual(0)
})
