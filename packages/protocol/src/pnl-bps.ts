import { MAX_TRIGGER_BPS } from './exit-triggers.ts'
import type { WatchedPosition } from './position.ts'

/** Returns the PnL in bps of a price (8 decimals) against an entry price (USDC base units), truncated towards zero. */
export function pnlBps(price: bigint, entryPriceUsdc: bigint): bigint {
  const entry = entryPriceUsdc * 100n
  return entry === 0n ? 0n : ((price - entry) * 10_000n) / entry
}

// What cost nothing counts as the highest gain.
const PNL_WITHOUT_COST_BPS = MAX_TRIGGER_BPS

/**
 * Returns the PnL in bps of tokens at a price (8 decimals) against their cost (USDC base units), truncated towards
 * zero.
 */
export function costPnlBps(
  { tokenAmount, usdcCostBasis }: { tokenAmount: bigint; usdcCostBasis: bigint },
  { price, decimals }: { price: bigint; decimals: number },
): bigint {
  if (usdcCostBasis === 0n) return PNL_WITHOUT_COST_BPS
  const cost = usdcCostBasis * 100n * 10n ** BigInt(decimals)
  return ((tokenAmount * price - cost) * 10_000n) / cost
}

/**
 * Returns a position's PnL in bps at a price, as the router computes it: against the cost basis, or against the entry
 * price in a deployment without the extension.
 */
export const watchedPnlBps = (position: WatchedPosition, price: bigint, decimals: number): bigint =>
  position.dueExit === undefined ? pnlBps(price, position.entryPriceUsdc) : costPnlBps(position, { price, decimals })
