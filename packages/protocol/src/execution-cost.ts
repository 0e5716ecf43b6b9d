import { isPurchase } from './agent-book.ts'
import type { Trade } from './trade-events.ts'

const BPS = 10_000n

/**
 * Returns what an execution cost against the oracle, in USDC base units: what was paid above the oracle's value of the
 * tokens, or received below it. Negative if the execution was better than the oracle's price.
 */
export const executionCost = (
  { type, usdcAmount = 0n }: Pick<Trade, 'type' | 'usdcAmount'>,
  oracleValueUsdc: bigint,
): bigint => (isPurchase({ type }) ? usdcAmount - oracleValueUsdc : oracleValueUsdc - usdcAmount)

/** Returns a cost as a part of the oracle's value in basis points, truncated towards zero; null without a value. */
export const costBpsOf = (cost: bigint, oracleValueUsdc: bigint): number | null =>
  oracleValueUsdc === 0n ? null : Number((cost * BPS) / oracleValueUsdc)
