import { CapitalMode } from './enums.ts'
import type { ExtensionTerms, TradingTerms } from './router-check-inputs.ts'

const BPS = 10_000n

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

export const lossOf = (pnl: bigint): bigint => (pnl < 0n ? -pnl : 0n)

const isSimulated = (extension: ExtensionTerms | undefined): boolean => extension?.capitalMode === CapitalMode.Simulated
