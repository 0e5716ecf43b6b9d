import type { Check } from './check.ts'
import { lossOf, riskLimits } from './compute-risk-limits.ts'
import { AllocationStatus } from './enums.ts'
import type { ExtensionTerms, TradingTerms } from './router-check-inputs.ts'

const BPS = 10_000n

/** Returns the checks of the limits of new risk. Without an amount, they check one base unit. */
export function riskChecks(terms: TradingTerms, entry: { usdcAmount?: bigint | undefined }): Check[] {
  const { allocation, extension } = terms
  const amount = entry.usdcAmount ?? 1n
  const limits = riskLimits(terms)
  const { cap, maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss, idleAssets } = limits
  const atMost = (rule: string, code: Check['code'], used: bigint, limit: bigint): Check => ({
    rule,
    code,
    pass: used + amount <= limit,
    limit,
    used,
    after: used + (entry.usdcAmount ?? 0n),
  })
  const checks: Check[] = [
    { rule: 'allocationActive', code: 'ALLOCATION_NOT_ACTIVE', pass: allocation.status === AllocationStatus.Active },
    atMost('allocationCap', 'EXCEEDS_ALLOCATION_CAP', allocation.used, cap),
    atMost('maxTradeSize', 'EXCEEDS_MAX_TRADE_SIZE', 0n, maxTradeSize),
  ]
  if (maxDailyTurnover !== undefined)
    checks.push(atMost('dailyTurnover', 'EXCEEDS_DAILY_TURNOVER', dailyTurnover, maxDailyTurnover))
  if (maxDailyLoss !== undefined)
    checks.push({
      rule: 'dailyLoss',
      code: 'EXCEEDS_DAILY_LOSS',
      pass: dailyLoss < maxDailyLoss,
      limit: maxDailyLoss,
      used: dailyLoss,
    })
  if (extension !== undefined) checks.push(...drawdownChecks(terms, extension))
  if (idleAssets !== undefined) checks.push(atMost('idleAssets', 'INSUFFICIENT_IDLE_ASSETS', 0n, idleAssets))
  return checks
}

/** The drawdown of the realized PnL below its peak, relative to the allocation cap plus that peak. */
function drawdownChecks({ allocation, trackConfig }: TradingTerms, extension: ExtensionTerms): Check[] {
  const { maxDrawdownBps } = trackConfig
  if (maxDrawdownBps === 0n) return []
  const { peakRealizedPnlUsdc, realizedPnlUsdc } = extension
  const fall = lossOf(realizedPnlUsdc - peakRealizedPnlUsdc)
  const peak = allocation.cap + peakRealizedPnlUsdc
  return [
    {
      rule: 'maxDrawdown',
      code: 'EXCEEDS_MAX_DRAWDOWN',
      pass: fall * BPS <= peak * maxDrawdownBps,
      limit: maxDrawdownBps,
      used: peak === 0n ? 0n : (fall * BPS + peak - 1n) / peak,
    },
  ]
}
