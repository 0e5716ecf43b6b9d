import type { Check, TradingTerms } from './check.ts'
import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { expectedTokens, fillFloor } from './fill-amounts.ts'
import { usdcValue } from './oracle-price.ts'
import { isBuy, isFallOrder } from './order-rules.ts'
import { type Order, OrderCondition } from './order-typed-data.ts'
import { riskLimits } from './risk-limit-checks.ts'

const BPS = 10_000n

/** A purchase with its ladder. `usdcAmount` is in USDC base units. */
export type LadderedPurchase = { usdcAmount: bigint; maxSlippageBps: number; exits: readonly ExitRule[] }

/** Returns how far below the entry price the first stop-loss is, in basis points; undefined without one. */
export function stopDistanceBps(exits: readonly ExitRule[]): bigint | undefined {
  const [first] = exits.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)
  return first && -first.triggerBps
}

/** The most that a fill within the slippage costs on the way in and out, in basis points. */
export const mostRoundTripBps = (maxSlippageBps: number): bigint => 2n * BigInt(maxSlippageBps)

/**
 * Returns what buying and selling at once costs, in basis points of the oracle's value, rounded up: the sale is taken to cost as
 * much as the purchase that the venue quoted. Undefined if the price is unknown or the venue quotes no fill.
 */
export function roundTripCostBps(
  { token, extension }: Pick<TradingTerms, 'token' | 'extension'>,
  usdcAmount: bigint,
): bigint | undefined {
  if (token === undefined || token.quote.price === 0n) return undefined
  const filled = expectedTokens(token, usdcAmount, extension?.capitalMode)
  const fair = fillFloor(usdcAmount, { price: token.quote.price, decimals: token.decimals }, { maxSlippageBps: 0 })
  if (filled === undefined || fair === 0n) return undefined
  return filled >= fair ? 0n : (2n * (fair - filled) * BPS + fair - 1n) / fair
}

/**
 * Returns the check that a stop-loss is further away than what buying and selling costs: a nearer one fires at once and loses
 * that cost. Empty if the ladder has none or the cost is unknown. `limit` is the nearest distance that passes, in basis points.
 */
export function stopDistanceChecks(
  terms: Pick<TradingTerms, 'token' | 'extension'>,
  { usdcAmount, maxSlippageBps, exits }: LadderedPurchase,
): Check[] {
  const distance = stopDistanceBps(exits)
  const cost = roundTripCostBps(terms, usdcAmount)
  if (distance === undefined || cost === undefined) return []
  const most = mostRoundTripBps(maxSlippageBps)
  const limit = (cost < most ? cost : most) + 1n
  return [{ rule: 'stopDistance', code: 'STOP_WITHIN_COSTS', pass: distance >= limit, limit, used: distance }]
}

/**
 * Returns the check that an order to sell on a fall is further away than what selling and buying back costs, as `stopDistanceChecks`
 * does for a ladder. Empty for other orders, and if the cost is unknown.
 */
export function orderDistanceChecks({ token }: Pick<TradingTerms, 'token'>, order: Order): Check[] {
  if (isBuy(order) || !isFallOrder(order)) return []
  if (token?.sale?.usdcOut === undefined || token.quote.price === 0n) return []
  const { price } = token.quote
  const fair = usdcValue(token.sale.tokenIn, { price, decimals: token.decimals })
  const lost = fair - token.sale.usdcOut
  const limit = (lost > 0n ? (2n * lost * BPS + fair - 1n) / fair : 0n) + 1n
  const isTrailing = order.condition === OrderCondition.Trailing
  const distance = isTrailing ? BigInt(order.trailBps) : ((price - order.price) * BPS) / price
  return [{ rule: 'stopDistance', code: 'STOP_WITHIN_COSTS', pass: distance >= limit, limit, used: distance }]
}

/**
 * Returns what a purchase loses if its stop-losses fire at their triggers, with the cost of selling, in USDC base units rounded
 * up. Undefined without a stop-loss. A gap in the price loses more.
 */
export function lossAtStopUsdc(
  { usdcAmount, exits }: Pick<LadderedPurchase, 'usdcAmount' | 'exits'>,
  saleCostBps: bigint,
): bigint | undefined {
  const stops = exits.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)
  if (stops.length === 0) return undefined
  let left = usdcAmount
  let loss = 0n
  for (const { triggerBps, exitBps } of stops) {
    const sold = (left * BigInt(exitBps)) / BPS
    const brings = (sold * (BPS + triggerBps) * (BPS - saleCostBps)) / (BPS * BPS)
    loss += sold - (brings > 0n ? brings : 0n)
    left -= sold
  }
  return loss
}

/** What the stop-losses of a purchase would do to its agent. Shares are in basis points, rounded up; amounts USDC base units. */
export type LossAtStop = {
  usdc: bigint
  /** Of the allocation's cap plus what the track has realized; undefined if nothing is left of them. */
  shareOfEquityBps: bigint | undefined
  /** Of the day's limit; undefined if there is none. */
  shareOfDailyLimitBps: bigint | undefined
  /** The limits that the loss alone reaches, with what is left of them. */
  breaks: readonly { limit: 'dailyLoss' | 'maxDrawdown'; leftUsdc: bigint }[]
}

/** Returns what the stop-losses of a purchase would do to its agent; undefined without a stop-loss. */
export function lossAtStop(terms: TradingTerms, purchase: LadderedPurchase): LossAtStop | undefined {
  const { allocation, extension, trackConfig } = terms
  const roundTrip = roundTripCostBps(terms, purchase.usdcAmount) ?? 0n
  const usdc = lossAtStopUsdc(purchase, (roundTrip + 1n) / 2n)
  if (usdc === undefined) return undefined
  const { maxDailyLoss, dailyLoss } = riskLimits(terms)
  const { realizedPnlUsdc = 0n, peakRealizedPnlUsdc = 0n } = extension ?? {}
  const allowedFall = ((allocation.cap + peakRealizedPnlUsdc) * trackConfig.maxDrawdownBps) / BPS
  const leftOfDay = maxDailyLoss === undefined ? undefined : atLeastZero(maxDailyLoss - dailyLoss)
  const leftOfDrawdown =
    extension === undefined || trackConfig.maxDrawdownBps === 0n
      ? undefined
      : atLeastZero(allowedFall - (peakRealizedPnlUsdc - realizedPnlUsdc))
  return {
    usdc,
    shareOfEquityBps: shareBps(usdc, allocation.cap + realizedPnlUsdc),
    shareOfDailyLimitBps: maxDailyLoss === undefined ? undefined : shareBps(usdc, maxDailyLoss),
    breaks: [
      ...(leftOfDay !== undefined && usdc >= leftOfDay ? [{ limit: 'dailyLoss' as const, leftUsdc: leftOfDay }] : []),
      ...(leftOfDrawdown !== undefined && usdc > leftOfDrawdown
        ? [{ limit: 'maxDrawdown' as const, leftUsdc: leftOfDrawdown }]
        : []),
    ],
  }
}

/**
 * Returns the largest purchase whose stop-losses lose at most `maxLossUsdc`, given a round trip's cost in basis points; 0 if there
 * is none, undefined without a stop-loss. USDC base units.
 */
export function usdcAmountForLoss(
  maxLossUsdc: bigint,
  exits: readonly ExitRule[],
  roundTripBps: bigint,
): bigint | undefined {
  const saleCostBps = (roundTripBps + 1n) / 2n
  const lossOfWhole = lossAtStopUsdc({ usdcAmount: WHOLE, exits }, saleCostBps)
  if (lossOfWhole === undefined || lossOfWhole === 0n) return undefined
  let usdcAmount = (maxLossUsdc * WHOLE) / lossOfWhole
  // Each rule rounds up by a unit.
  while (usdcAmount > 0n && (lossAtStopUsdc({ usdcAmount, exits }, saleCostBps) ?? 0n) > maxLossUsdc) usdcAmount -= 1n
  return usdcAmount
}

/** An amount of which five rules sell exact shares. */
const WHOLE = BPS ** 5n

const atLeastZero = (value: bigint) => (value < 0n ? 0n : value)
const shareBps = (part: bigint, whole: bigint) => (whole <= 0n ? undefined : (part * BPS + whole - 1n) / whole)
