import { PositionStatus, TriggerType } from './enums.ts'
import { costPnlBps, isTriggered, pnlBps } from './exit-triggers.ts'
import { isExitInProgress, type WatchedPosition } from './position.ts'
import { type PriceQuote, usdcValue } from './price-quote.ts'
import type { ExitRule } from './typed-data.ts'

const BPS = 10_000n

/** The market of a position's token, as far as it decides about exits. */
export type ExitMarket = { quote: PriceQuote; decimals: number; tradingPaused: boolean }

/** A pending rule of a position, compared with the market. Prices have 8 decimals. */
export type PendingExit = {
  /** Index of the rule in the ladder. */
  ruleIndex: number
  rule: ExitRule
  triggerPrice: bigint
  /** The price move to the trigger: negative if the price must fall, 0 if it is reached, undefined without a price. */
  distanceBps: bigint | undefined
  /** Tokens to sell if the rule fires next, in base units. */
  tokenIn: bigint
  /** The floor of the sale's proceeds, at the current price if the trigger is reached, else at the trigger price. */
  minUsdcOut: bigint
}

/**
 * Returns the pending rules of a position in ladder order; none if it is closed. `maxExitSlippageBps` is how far below the
 * oracle's value its exits sell at most.
 */
export function pendingExits(
  position: WatchedPosition,
  { quote, decimals }: ExitMarket,
  maxExitSlippageBps: bigint,
): PendingExit[] {
  if (position.status !== PositionStatus.Open) return []
  return position.exitRules.slice(position.nextRuleIndex).map((rule, index) => {
    const ruleIndex = position.nextRuleIndex + index
    const isInProgress = isExitInProgress(position) && position.dueExit?.ruleIndex === ruleIndex
    const triggerPrice = triggerPriceOf(rule, position, decimals)
    const isReached =
      isInProgress || (quote.quoted && isTriggered(rule, watchedPnlBps(position, quote.price, decimals)))
    const market = { price: isReached ? quote.price : triggerPrice, decimals }
    const tokenIn = isInProgress
      ? (position.dueExit?.tokensLeft ?? 0n)
      : tokensToSell(position.tokenAmount, rule.exitBps, market)
    return {
      ruleIndex,
      rule,
      triggerPrice,
      distanceBps: isReached ? 0n : quote.price === 0n ? undefined : distanceBps(quote.price, triggerPrice),
      tokenIn,
      minUsdcOut: (usdcValue(tokenIn, market) * (BPS - maxExitSlippageBps)) / BPS,
    }
  })
}

/**
 * Returns a position's PnL in bps at a price, as the router computes it: against the cost basis, or against the entry price
 * in a deployment without the extension.
 */
export const watchedPnlBps = (position: WatchedPosition, price: bigint, decimals: number): bigint =>
  position.dueExit === undefined ? pnlBps(price, position.entryPriceUsdc) : costPnlBps(position, { price, decimals })

/** Returns the price that triggers a rule: the highest one for a StopLoss, the lowest one for a TakeProfit. */
function triggerPriceOf({ triggerType, triggerBps }: ExitRule, position: WatchedPosition, decimals: number): bigint {
  const { dueExit, entryPriceUsdc, usdcCostBasis, tokenAmount } = position
  const [paid, tokens] =
    dueExit === undefined ? [entryPriceUsdc, 1n] : [usdcCostBasis * 10n ** BigInt(decimals), tokenAmount]
  const scaled = paid * 100n * (BPS + triggerBps)
  const divisor = BPS * tokens
  if (scaled <= 0n) return 0n
  return triggerType === TriggerType.StopLoss ? scaled / divisor : (scaled + divisor - 1n) / divisor
}

/** Rounds away from zero, so that a trigger that is not reached is never 0 bps away. */
function distanceBps(price: bigint, trigger: bigint): bigint {
  const move = (trigger - price) * BPS
  return move < 0n ? (move - price + 1n) / price : (move + price - 1n) / price
}

/** Returns the share that the router sells: everything if the share is zero or the rest would be worth nothing. */
function tokensToSell(tokenAmount: bigint, exitBps: number, market: { price: bigint; decimals: number }): bigint {
  const share = (tokenAmount * BigInt(exitBps)) / BPS
  return share === 0n || usdcValue(tokenAmount - share, market) === 0n ? tokenAmount : share
}
