import { TriggerType } from './enums.ts'
import type { ExitRule } from './typed-data.ts'

/** The farthest trigger: the position manager packs it into 24 signed bits. */
export const MAX_TRIGGER_BPS = 8_388_607n

/** Returns the PnL in bps of a price (8 decimals) against an entry price (USDC base units), truncated towards zero. */
export function pnlBps(price: bigint, entryPriceUsdc: bigint): bigint {
  const entry = entryPriceUsdc * 100n
  return entry === 0n ? 0n : ((price - entry) * 10_000n) / entry
}

// What cost nothing counts as the highest gain.
const PNL_WITHOUT_COST_BPS = MAX_TRIGGER_BPS

/** Returns the PnL in bps of tokens at a price (8 decimals) against their cost (USDC base units), truncated towards zero. */
export function costPnlBps(
  { tokenAmount, usdcCostBasis }: { tokenAmount: bigint; usdcCostBasis: bigint },
  { price, decimals }: { price: bigint; decimals: number },
): bigint {
  if (usdcCostBasis === 0n) return PNL_WITHOUT_COST_BPS
  const cost = usdcCostBasis * 100n * 10n ** BigInt(decimals)
  return ((tokenAmount * price - cost) * 10_000n) / cost
}

/** Whether a PnL in bps triggers a rule: a StopLoss at or below its trigger, a TakeProfit at or above it. */
export const isTriggered = ({ triggerType, triggerBps }: ExitRule, pnl: bigint): boolean =>
  triggerType === TriggerType.StopLoss ? pnl <= triggerBps : pnl >= triggerBps
