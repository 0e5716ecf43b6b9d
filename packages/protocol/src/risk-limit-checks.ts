import type { Check, ExtensionTerms, TradingTerms } from './check.ts'
import { AllocationStatus, CapitalMode } from './enums.ts'

const BPS = 10_000n

/** Returns the checks of the limits of new risk. Without an amount, they check one base unit. */
export function riskChecks(terms: TradingTerms, { usdcAmount }: { usdcAmount?: bigint | undefined }): Check[] {
  const { allocation, extension } = terms
  const limits = riskLimits(terms)
  const { cap, maxTradeSize, maxDailyTurnover, maxDailyLoss, dailyTurnover, dailyLoss, idleAssets } = limits
  const atMost = limitChecksOf(usdcAmount)
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
  if (extension !== undefined) checks.push(...drawdownChecks(terms, extension), ...wasteChecks(extension))
  if (idleAssets !== undefined) checks.push(atMost('idleAssets', 'INSUFFICIENT_IDLE_ASSETS', 0n, idleAssets))
  return checks
}

/** Returns the function that checks a purchase against a limit. Without an amount, it checks one base unit. */
export const limitChecksOf =
  (usdcAmount: bigint | undefined) =>
  (rule: string, code: Check['code'], used: bigint, limit: bigint): Check => ({
    rule,
    code,
    pass: used + (usdcAmount ?? 1n) <= limit,
    limit,
    used,
    after: used + (usdcAmount ?? 0n),
  })

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

/** The bound of what the agent's fills lost beyond what fair ones cost. */
const wasteChecks = ({ waste: { usdc, maxUsdc } }: ExtensionTerms): Check[] =>
  maxUsdc === 0n ? [] : [{ rule: 'waste', code: 'EXCEEDS_WASTE', pass: usdc <= maxUsdc, limit: maxUsdc, used: usdc }]

/** Returns the limits of new risk in USDC base units, and what already counts against them; undefined is no limit. */
export function riskLimits(terms: TradingTerms) {
  const { maxTradeSizeBps, maxDailyTurnoverBps, maxDailyLossBps } = terms.trackConfig
  const { totalAssets, idleAssets } = terms.vault
  const { extension } = terms
  const previous = extension?.previousDay
  return {
    cap: extension?.effectiveCap ?? terms.allocation.cap,
    idleAssets: isSimulated(extension) ? undefined : idleAssets,
    maxTradeSize: (totalAssets * maxTradeSizeBps) / BPS,
    maxDailyTurnover: maxDailyTurnoverBps === 0n ? undefined : (totalAssets * maxDailyTurnoverBps) / BPS,
    maxDailyLoss: maxDailyLossBps === 0n ? undefined : (terms.allocation.cap * maxDailyLossBps) / BPS,
    dailyTurnover: terms.dailyTurnoverUsdc + remainderOf(previous?.turnoverUsdc, extension),
    dailyLoss:
      lossOf(terms.dailyRealizedPnlUsdc) + remainderOf(previous && lossOf(previous.realizedPnlUsdc), extension),
  }
}

const DAY_SECONDS = 86_400n
const WHOLE_USDC = 1_000_000n

/**
 * Returns the part of a figure of the day before that lies within the last 24 hours. It counts as spread evenly, and
 * rounded up to whole USDC, as the ledger stores it.
 */
function remainderOf(figure: bigint | undefined, extension: ExtensionTerms | undefined): bigint {
  if (figure === undefined || extension === undefined) return 0n
  const stored = ((figure + WHOLE_USDC - 1n) / WHOLE_USDC) * WHOLE_USDC
  return (stored * (DAY_SECONDS - (extension.blockTime % DAY_SECONDS))) / DAY_SECONDS
}

const lossOf = (pnl: bigint): bigint => (pnl < 0n ? -pnl : 0n)

const isSimulated = (extension: ExtensionTerms | undefined): boolean => extension?.capitalMode === CapitalMode.Simulated
