import { type Check, type ExtensionTerms, ladderBounds, type TokenTerms, type TradingTerms } from './check.ts'
import { TriggerType } from './enums.ts'
import { findBoundsProblem, findShapeProblem } from './exit-ladder-validation.ts'
import type { ExitRule } from './exit-rule.ts'
import { isTriggered } from './exit-triggers.ts'
import { costPnlBps, pnlBps } from './pnl-bps.ts'
import { isExitInProgress, type Position, pendingRules } from './position.ts'

/** Returns the checks of a ladder's shape and of the track's bounds. */
export function ladderChecks(exits: readonly ExitRule[], terms: TradingTerms, firedRules: number): Check[] {
  const shapeProblem = findShapeProblem(exits, firedRules)
  const isTooLong = shapeProblem !== undefined && shapeProblem.ruleIndex === undefined && exits.length > 0
  const boundsProblem = shapeProblem === undefined ? findBoundsProblem(exits, ladderBounds(terms)) : undefined
  return [
    {
      rule: 'ladderShape',
      code: isTooLong ? 'TOO_MANY_EXIT_RULES' : 'INVALID_EXIT_RULES',
      pass: shapeProblem === undefined,
      ...(shapeProblem && { problem: shapeProblem }),
    },
    {
      rule: 'exitBounds',
      code: 'EXIT_RULES_OUT_OF_BOUNDS',
      pass: shapeProblem === undefined && boundsProblem === undefined,
      ...(boundsProblem && { problem: boundsProblem }),
    },
  ]
}

export const exitInProgressCheck = (terms: TradingTerms): Check => ({
  rule: 'noExitInProgress',
  code: 'EXIT_IN_PROGRESS',
  pass: !isExitInProgress(terms),
})

/** An add waits while an exit is not completely filled or a pending rule is met at the current price. */
export function pendingRuleChecks(terms: TradingTerms): Check[] {
  const { extension, position, token } = terms
  if (extension === undefined || position === undefined || token === undefined) return []
  const pnl = costPnlBps(position, { price: token.quote.price, decimals: token.decimals })
  const isMet = token.quote.quoted && pendingRules(position).some(rule => isTriggered(rule, pnl))
  return [
    exitInProgressCheck(terms),
    { rule: 'noPendingRuleMet', code: 'PENDING_RULE_ALREADY_TRIGGERED', pass: !isMet, used: pnl },
  ]
}

/**
 * Returns the check that no new rule would fire at once and, with the extension, that no StopLoss that is met is
 * replaced.
 */
export function notTriggeredCheck(
  exits: readonly ExitRule[],
  { position, token, extension }: { position: Position; token: TokenTerms; extension: ExtensionTerms | undefined },
): Check {
  const market = { price: token.quote.price, decimals: token.decimals }
  const pnl = extension ? costPnlBps(position, market) : pnlBps(market.price, position.entryPriceUsdc)
  const ruleIndex = token.quote.quoted ? exits.findIndex(rule => isTriggered(rule, pnl)) : -1
  const firesImmediately = ruleIndex !== -1
  const stopIsMet =
    extension !== undefined && token.quote.quoted && pendingRules(position).some(rule => isMetStop(rule, pnl))
  return {
    rule: 'notTriggeredAlready',
    code: 'PENDING_RULE_ALREADY_TRIGGERED',
    pass: !firesImmediately && !stopIsMet,
    used: pnl,
    ...(firesImmediately && { problem: { problem: 'the rule would fire immediately', ruleIndex } }),
    ...(!firesImmediately && stopIsMet && { problem: { problem: 'a pending StopLoss is met' } }),
  }
}

const isMetStop = (rule: ExitRule, pnl: bigint) => rule.triggerType === TriggerType.StopLoss && isTriggered(rule, pnl)
