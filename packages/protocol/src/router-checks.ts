import type { Check } from './check.ts'
import type { ExitRule } from './exit-rule.ts'
import { paperPrice, reduceAmounts } from './fill-amounts.ts'
import { exitInProgressCheck, ladderChecks, notTriggeredCheck, pendingRuleChecks } from './ladder-checks.ts'
import { mandateLadderChecks, mandateLimitChecks, mandateModeChecks } from './mandate-checks.ts'
import { deadlineChecks, policyChecks } from './policy-checks.ts'
import { priceCheck, purchaseSlippageChecks, slippageCheck } from './price-and-slippage-checks.ts'
import { riskChecks } from './risk-limit-checks.ts'
import type { TradingTerms } from './router-check-inputs.ts'
import {
  agentChecks,
  agentNotOverCheck,
  capitalModeChecks,
  onePositionPerTokenCheck,
  openPositionCheck,
  tokenAllowedCheck,
  trackActiveCheck,
  tradingNotPausedCheck,
} from './status-checks.ts'

/** The part of an open or add that the checks look at. Without an amount, they check one base unit. */
type Entry = {
  usdcAmount?: bigint | undefined
  minTokenOut?: bigint | undefined
  maxSlippageBps: number
  /** Unix seconds. */
  deadline: bigint
  exits?: readonly ExitRule[] | undefined
}

/** Returns the checks of an open, in the router's order. */
export function openChecks(terms: TradingTerms, entry: Entry): Check[] {
  const { extension, token } = terms
  const trackActive = trackActiveCheck(terms)
  const ladder = entry.exits ? ladderChecks(entry.exits, terms, 0) : []
  const allowed = token ? [tokenAllowedCheck(token)] : []
  const onePosition = token ? [onePositionPerTokenCheck(token)] : []
  return [
    ...agentChecks(terms),
    ...mandateModeChecks(terms),
    tradingNotPausedCheck(terms),
    ...(extension === undefined
      ? [trackActive, ...allowed, ...ladder, ...onePosition]
      : [...allowed, ...onePosition, trackActive, ...ladder]),
    ...riskChecks(terms, entry),
    ...mandateLimitChecks(terms, entry),
    ...fillChecks(terms, entry),
  ]
}

/** Returns the checks of an add, in the router's order. */
export function addChecks(terms: TradingTerms, entry: Entry): Check[] {
  const trackActive = trackActiveCheck(terms)
  const allowed = terms.token ? [tokenAllowedCheck(terms.token)] : []
  return [
    ...agentChecks(terms),
    ...mandateModeChecks(terms),
    openPositionCheck(terms),
    tradingNotPausedCheck(terms),
    ...(terms.extension === undefined ? [trackActive, ...allowed] : [...allowed, trackActive]),
    ...riskChecks(terms, entry),
    ...mandateLimitChecks(terms, entry),
    ...capitalModeChecks(terms),
    ...fillChecks(terms, entry, pendingRuleChecks(terms)),
  ]
}

/** Returns the checks of a purchase against price, policy and pool. `afterPrice` follows the check of the price. */
function fillChecks(terms: TradingTerms, entry: Entry, afterPrice: Check[] = []): Check[] {
  const { token, extension } = terms
  const { usdcAmount, maxSlippageBps, deadline } = entry
  return [
    ...(token ? [priceCheck(token)] : []),
    ...afterPrice,
    ...policyChecks(extension, token, { usdcAmount, maxSlippageBps, deadline }),
    ...purchaseSlippageChecks(terms, entry),
  ]
}

/** Returns the checks of a reduce, in the router's order. */
export function reduceChecks(
  terms: TradingTerms,
  { exitBps, deadline }: { exitBps: number; deadline: bigint },
): Check[] {
  const { position, token, extension } = terms
  const { tokenIn, minUsdcOut, usdcValue } = reduceAmounts(terms, exitBps)
  const isPartial = position !== undefined && tokenIn < position.tokenAmount
  const checks: Check[] = [
    openPositionCheck(terms),
    tradingNotPausedCheck(terms),
    priceCheck(token),
    { rule: 'somethingToSell', code: 'INVALID_REDUCE_AMOUNT', pass: position !== undefined && tokenIn > 0n },
    ...policyChecks(extension, token, { usdcAmount: isPartial ? usdcValue : undefined, deadline }),
  ]
  if (token?.sale !== undefined) {
    checks.push(slippageCheck(minUsdcOut, paperPrice(token.sale.usdcOut ?? 0n, usdcValue, position?.capitalMode)))
  }
  return checks
}

/** Returns the checks of a ladder update, in the router's order. */
export function ladderUpdateChecks(
  terms: TradingTerms,
  { exits, deadline }: { exits: readonly ExitRule[] | undefined; deadline: bigint },
): Check[] {
  const { position, token, extension } = terms
  const checks = [openPositionCheck(terms)]
  if (extension !== undefined)
    checks.push(agentNotOverCheck(terms), exitInProgressCheck(terms), ...deadlineChecks(extension, deadline))
  if (exits === undefined || position === undefined || token === undefined) return checks
  return [
    ...checks,
    ...ladderChecks(exits, terms, position.nextRuleIndex),
    ...mandateLadderChecks(terms, { exits, pending: position.exitRules.slice(position.nextRuleIndex) }),
    notTriggeredCheck(exits, { position, token, extension }),
  ]
}
