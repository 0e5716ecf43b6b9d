import type { ExtensionTerms } from './check.ts'
import { PositionStatus } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { isTriggered, triggerPriceOf } from './exit-triggers.ts'
import { maxExitSlippageBps, saleFloor } from './fill-amounts.ts'
import { usdcValue } from './oracle-price.ts'
import { watchedPnlBps } from './pnl-bps.ts'
import { type ExitMarket, isExitInProgress, type WatchedPosition } from './position.ts'

const BPS = 10_000n

/** What a pending rule of a position will do in the present market. Prices have 8 decimals. */
export type PendingExitForecast = {
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
 * Forecasts the exits of a position's pending rules in ladder order; none if it is closed. `extension` holds the policy
 * that bounds how far below the oracle's value its exits sell.
 */
export function forecastPendingExits(
  position: WatchedPosition,
  { quote, decimals }: ExitMarket,
  extension: ExtensionTerms | undefined,
): PendingExitForecast[] {
  if (position.status !== PositionStatus.Open) return []
  const slippageBps = maxExitSlippageBps(BigInt(position.maxSlippageBps), extension)
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
      minUsdcOut: saleFloor(tokenIn, market, slippageBps, extension),
    }
  })
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
