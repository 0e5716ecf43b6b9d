import type { Check, ExtensionTerms, TokenTerms, TradingTerms } from './check.ts'
import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { triggerPriceOf } from './exit-triggers.ts'
import { expectedTokens, fillFloor, maxExitSlippageBps, paperPrice, saleFloor } from './fill-amounts.ts'
import { usdcValue } from './oracle-price.ts'
import { isBuy, isFallOrder } from './order-rules.ts'
import { type Order, OrderCondition } from './order-typed-data.ts'
import { costPnlBps } from './pnl-bps.ts'
import { type Position, pendingRules } from './position.ts'
import { riskLimits } from './risk-limit-checks.ts'

const BPS = 10_000n

/** A purchase with its ladder. `usdcAmount` is in USDC base units. */
export type LadderedPurchase = { usdcAmount: bigint; maxSlippageBps: number; exits: readonly ExitRule[] }

const stopsOf = (exits: readonly ExitRule[]) => exits.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)

/** Returns how far below the entry price the first stop-loss is, in basis points; undefined without one. */
export function stopDistanceBps(exits: readonly ExitRule[]): bigint | undefined {
  const [first] = stopsOf(exits)
  return first && -first.triggerBps
}

/** The most that a fill within the slippage costs on the way in and out, in basis points. */
export const mostRoundTripBps = (maxSlippageBps: number): bigint => 2n * BigInt(maxSlippageBps)

// A stop-loss that is no further below the present price than what selling costs fires at once and loses that cost.
// `limit` of the check is the nearest distance below the entry price that passes, in basis points; there is no check
// where the cost is unknown.

/** Returns the check of a purchase that opens a position: its value starts below its cost by what buying costs. */
export function stopDistanceChecks(
  terms: Pick<TradingTerms, 'token' | 'extension'>,
  { usdcAmount, maxSlippageBps, exits }: LadderedPurchase,
): Check[] {
  const cost = terms.token && roundTripCostBps(terms.token, usdcAmount, terms.extension?.capitalMode)
  if (cost === undefined) return []
  const most = mostRoundTripBps(maxSlippageBps)
  return distanceChecks(exits, (cost < most ? cost : most) + 1n)
}

type HeldTerms = { token: TokenTerms; position: Position }

/**
 * Returns the check of a purchase that adds to a position, whose stop-losses then count from the average entry price.
 */
export function addStopDistanceChecks({ token, position }: HeldTerms, usdcAmount: bigint): Check[] {
  const bought = expectedTokens(token, usdcAmount, position.capitalMode)
  const roundTrip = roundTripCostBps(token, usdcAmount, position.capitalMode)
  if (bought === undefined || roundTrip === undefined) return []
  const after = {
    tokenAmount: position.tokenAmount + bought,
    usdcCostBasis: position.usdcCostBasis + usdcAmount,
  }
  const pnl = costPnlBps(after, { price: token.quote.price, decimals: token.decimals })
  return distanceChecks(pendingRules(position), oneWayBps(roundTrip) + 1n - pnl)
}

/** Returns the check of a ladder update. The terms need the sale of the whole position. */
export function ladderStopDistanceChecks({ token, position }: HeldTerms, exits: readonly ExitRule[]): Check[] {
  const market = { price: token.quote.price, decimals: token.decimals }
  const value = usdcValue(position.tokenAmount, market)
  const quoted = token.sale?.tokenIn === position.tokenAmount ? token.sale.usdcOut : undefined
  if (quoted === undefined || value === 0n) return []
  const lost = value - paperPrice(quoted, value, position.capitalMode)
  const costBps = lost > 0n ? ceilDiv(lost * BPS, value) : 0n
  return distanceChecks(exits, costBps + 1n - costPnlBps(position, market))
}

/**
 * Returns the check of an order to sell on a fall, whose distance counts from the present price; of a trailing stop
 * from its peak. Empty for other orders. The terms need the sale of its first part.
 */
export function orderDistanceChecks({ token }: Pick<TradingTerms, 'token'>, order: Order): Check[] {
  if (isBuy(order) || !isFallOrder(order)) return []
  if (token?.sale?.usdcOut === undefined || token.quote.price === 0n) return []
  const { price } = token.quote
  const isTrailing = order.condition === OrderCondition.Trailing
  if (!isTrailing && order.price >= price)
    return [{ rule: 'stopDistance', code: 'STOP_ABOVE_PRICE', pass: false, limit: price, used: order.price }]
  const value = usdcValue(token.sale.tokenIn, { price, decimals: token.decimals })
  const lost = value - token.sale.usdcOut
  const limit = (lost > 0n ? ceilDiv(2n * lost * BPS, value) : 0n) + 1n
  const distance = isTrailing ? BigInt(order.trailBps) : ((price - order.price) * BPS) / price
  return [{ rule: 'stopDistance', code: 'STOP_WITHIN_COSTS', pass: distance >= limit, limit, used: distance }]
}

/**
 * A stop-loss is at least one basis point below the entry price, also where a position in profit would let it be above.
 */
function distanceChecks(exits: readonly ExitRule[], nearest: bigint): Check[] {
  const distance = stopDistanceBps(exits)
  if (distance === undefined) return []
  const limit = nearest < 1n ? 1n : nearest
  return [{ rule: 'stopDistance', code: 'STOP_WITHIN_COSTS', pass: distance >= limit, limit, used: distance }]
}

/**
 * Returns what buying and selling at once costs, in basis points of the oracle's value, rounded up: the sale is taken
 * to cost as much as the purchase that the venue quoted. Undefined if the price is unknown or the venue quotes no fill.
 */
function roundTripCostBps(token: TokenTerms, usdcAmount: bigint, capitalMode: number | undefined): bigint | undefined {
  if (token.quote.price === 0n) return undefined
  const filled = expectedTokens(token, usdcAmount, capitalMode)
  const fair = fillFloor(usdcAmount, { price: token.quote.price, decimals: token.decimals }, { maxSlippageBps: 0 })
  if (filled === undefined || fair === 0n) return undefined
  return filled >= fair ? 0n : ceilDiv(2n * (fair - filled) * BPS, fair)
}

const oneWayBps = (roundTripBps: bigint) => (roundTripBps + 1n) / 2n

/** A whole position with its pending rules. `usdcCostBasis` is in USDC base units. */
export type StoppedPosition = { usdcCostBasis: bigint; exits: readonly ExitRule[] }

/**
 * Returns what the stop-losses of a position lose if each sells at its trigger and `slippageBps` below the oracle, in
 * USDC base units rounded up. Undefined without a stop-loss. A price that gaps, or falls on before the sale fills,
 * loses more.
 */
export function lossAtStopUsdc({ usdcCostBasis, exits }: StoppedPosition, slippageBps: bigint): bigint | undefined {
  const stops = stopsOf(exits)
  if (stops.length === 0) return undefined
  let left = usdcCostBasis
  let loss = 0n
  for (const { triggerBps, exitBps } of stops) {
    const sold = (left * BigInt(exitBps)) / BPS
    const brings = (sold * (BPS + triggerBps) * (BPS - slippageBps)) / (BPS * BPS)
    loss += sold - (brings > 0n ? brings : 0n)
    left -= sold
  }
  return loss
}

/**
 * Returns what the pending stop-losses of a position bring if each fires at its trigger and fills at its floor, in USDC
 * base units, and the tokens that none of them sells.
 */
export function saleAtStops(
  position: Position,
  decimals: number,
  extension: Pick<ExtensionTerms, 'tradePolicy'> | undefined,
): { usdcOut: bigint; tokensLeft: bigint } {
  const watched = { ...position, dueExit: undefined, closingSince: 0n }
  const slippageBps = maxExitSlippageBps(BigInt(position.maxSlippageBps), extension)
  let [usdcOut, tokensLeft] = [0n, position.tokenAmount]
  for (const rule of position.exitRules.slice(position.nextRuleIndex)) {
    if (rule.triggerType !== TriggerType.StopLoss) continue
    const sold = (tokensLeft * BigInt(rule.exitBps)) / BPS
    usdcOut += saleFloor(sold, { price: triggerPriceOf(rule, watched, decimals), decimals }, slippageBps, extension)
    tokensLeft -= sold
  }
  return { usdcOut, tokensLeft }
}

/**
 * What the stop-losses of a position would do to its agent. Shares are in basis points, rounded up; amounts USDC base
 * units.
 */
export type LossAtStop = {
  usdc: bigint
  /** Of the allocation's cap plus what the track has realized; undefined if nothing is left of them. */
  shareOfEquityBps: bigint | undefined
  /** Of the day's limit; undefined if there is none. */
  shareOfDailyLimitBps: bigint | undefined
  /** The limits that the loss alone reaches, with what is left of them. */
  breaks: readonly { limit: 'dailyLoss' | 'maxDrawdown'; leftUsdc: bigint }[]
}

/**
 * Returns what the stop-losses of a position would do to its agent if they sell at their lowest floor; undefined
 * without a stop-loss. `maxSlippageBps` is the signed one, which counts only in a deployment without a trade policy.
 */
export function lossAtStop(
  terms: TradingTerms,
  { maxSlippageBps, ...position }: StoppedPosition & { maxSlippageBps: number },
): LossAtStop | undefined {
  const { allocation, extension, trackConfig } = terms
  const usdc = lossAtStopUsdc(position, maxExitSlippageBps(BigInt(maxSlippageBps), extension))
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
 * Returns the largest cost of a position whose stop-losses lose at most `maxLossUsdc` at `slippageBps` below the
 * oracle; undefined without a stop-loss. USDC base units.
 */
export function costBasisForLoss(
  maxLossUsdc: bigint,
  exits: readonly ExitRule[],
  slippageBps: bigint,
): bigint | undefined {
  const lossOf = (usdcCostBasis: bigint) => lossAtStopUsdc({ usdcCostBasis, exits }, slippageBps)
  const lossOfWhole = lossOf(WHOLE)
  if (lossOfWhole === undefined) return undefined
  let fits = 0n
  // Each of five rules rounds by at most two units.
  let tooLarge = ceilDiv((maxLossUsdc + 10n) * WHOLE, lossOfWhole) + 1n
  while (tooLarge - fits > 1n) {
    const middle = (fits + tooLarge) / 2n
    if ((lossOf(middle) ?? 0n) <= maxLossUsdc) fits = middle
    else tooLarge = middle
  }
  return fits
}

/** An amount of which five rules sell exact shares. */
const WHOLE = BPS ** 5n

const atLeastZero = (value: bigint) => (value < 0n ? 0n : value)
const ceilDiv = (value: bigint, by: bigint) => (value + by - 1n) / by
const shareBps = (part: bigint, whole: bigint) => (whole <= 0n ? undefined : ceilDiv(part * BPS, whole))
