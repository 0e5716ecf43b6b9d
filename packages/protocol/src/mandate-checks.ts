import type { Check, TradingTerms } from './check.ts'
import { MandateMode, TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { limitChecksOf, riskLimits } from './risk-limit-checks.ts'

// What the mandate of the agent's owner allows. There are no checks where the contracts know no mandates.

/** Returns the check that the mandate lets the agent buy: its mode does, and it has not ended. */
export function mandateModeChecks({ extension }: TradingTerms): Check[] {
  if (extension?.mandate === undefined) return []
  const { mode, validUntil } = extension.mandate
  const hasEnd = mode === MandateMode.Trade && validUntil > 0n
  return [
    {
      rule: 'mandateAllowsBuying',
      code: 'MANDATE_STOPS_BUYING',
      pass: mode === MandateMode.Trade && (!hasEnd || extension.now <= validUntil),
      ...(hasEnd
        ? { limit: validUntil, used: extension.now }
        : { limit: BigInt(MandateMode.Trade), used: BigInt(mode) }),
    },
  ]
}

/** Returns the checks of the mandate's limits, in the contract's order. Without an amount, they check one base unit. */
export function mandateLimitChecks(terms: TradingTerms, { usdcAmount }: { usdcAmount?: bigint | undefined }): Check[] {
  const { allocation, extension, token } = terms
  if (extension?.mandate === undefined) return []
  const { hasTokenList, maxTradeUsdc, maxDailyTurnoverUsdc, maxExposureUsdc } = extension.mandate
  const atMost = (rule: string, code: Check['code'], used: bigint, limit: bigint): Check[] =>
    limit === 0n ? [] : [limitChecksOf(usdcAmount)(rule, code, used, limit)]
  const isAllowed = token?.isInMandate ?? true
  return [
    ...(hasTokenList && token
      ? [{ rule: 'mandateToken', code: 'TOKEN_OUTSIDE_MANDATE', pass: isAllowed } satisfies Check]
      : []),
    ...atMost('mandateTrade', 'EXCEEDS_MANDATE_TRADE', 0n, maxTradeUsdc),
    ...atMost('mandateTurnover', 'EXCEEDS_MANDATE_TURNOVER', riskLimits(terms).dailyTurnover, maxDailyTurnoverUsdc),
    ...atMost('mandateExposure', 'EXCEEDS_MANDATE_EXPOSURE', allocation.used, maxExposureUsdc),
  ]
}

/** Returns the check that an agent which its owner stopped does not loosen its stop-losses. */
export function mandateLadderChecks(
  { extension }: TradingTerms,
  { exits, pending }: { exits: readonly ExitRule[]; pending: readonly ExitRule[] },
): Check[] {
  if (extension?.mandate?.mode !== MandateMode.Stopped) return []
  return [
    {
      rule: 'mandateTightensLadder',
      code: 'MANDATE_FORBIDS_LOOSER_LADDER',
      pass: protectsAsWellAs(exits, pending),
    },
  ]
}

const BPS = 10_000n
/** A whole position; the shares that five rules leave of it are exact. */
const WHOLE = BPS ** 5n

/**
 * Whether the stop-losses of `rules` leave at most as much of the position, at every price, as `previous` does: each
 * is replaced by stops at the same price or earlier that together sell as much. Take-profits do not count.
 */
const protectsAsWellAs = (rules: readonly ExitRule[], previous: readonly ExitRule[]): boolean =>
  stopsOf(previous).every(({ triggerBps }) => leftAt(rules, triggerBps) <= leftAt(previous, triggerBps))

/** Returns what is left of `WHOLE` once every stop-loss that is met at the PnL has fired. */
const leftAt = (rules: readonly ExitRule[], pnlBps: bigint): bigint =>
  stopsOf(rules)
    .filter(({ triggerBps }) => pnlBps <= triggerBps)
    .reduce((left, { exitBps }) => (left / BPS) * (BPS - BigInt(exitBps)), WHOLE)

const stopsOf = (rules: readonly ExitRule[]) => rules.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)
