import type { Check } from './check.ts'
import { protectsAsWellAs } from './compare-stop-losses.ts'
import { riskLimits } from './compute-risk-limits.ts'
import { MandateMode } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import type { TradingTerms } from './router-check-inputs.ts'

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
      pass: mode === MandateMode.Trade && (!hasEnd || extension.blockTime <= validUntil),
      ...(hasEnd
        ? { limit: validUntil, used: extension.blockTime }
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
    limit === 0n
      ? []
      : [{ rule, code, pass: used + (usdcAmount ?? 1n) <= limit, limit, used, after: used + (usdcAmount ?? 0n) }]
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
