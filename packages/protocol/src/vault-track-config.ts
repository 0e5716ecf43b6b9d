import type { Address } from 'viem'

/** The risk policy of a track in a vault, as `getVaultTrackConfig` returns it. Amounts are USDC base units. */
export type TrackConfig = {
  vault: Address
  trackId: bigint
  initialAllocation: bigint
  maxAllocation: bigint
  maxDrawdownBps: bigint
  maxTradeSizeBps: bigint
  /** 0 is no limit. */
  maxDailyTurnoverBps: bigint
  /** 0 is no limit. */
  maxDailyLossBps: bigint
  /** Seconds. */
  evaluationPeriod: bigint
  minTrades: bigint
  promotionScore: bigint
  active: boolean
  maxStopLossBps: bigint
  minTakeProfitBps: bigint
  maxTakeProfitBps: bigint
  requireStopLoss: boolean
  requireTakeProfit: boolean
}

/**
 * Returns how much of its cost a position can lose at its deepest stop and to the slippage of its exit; all without a
 * stop.
 */
export function deepestLossBps(
  { requireStopLoss, maxStopLossBps }: Pick<TrackConfig, 'requireStopLoss' | 'maxStopLossBps'>,
  maxExitSlippageBps: number,
): number {
  const stopBps = requireStopLoss && maxStopLossBps !== 0n ? Number(maxStopLossBps) : 10_000
  return Math.min(stopBps + maxExitSlippageBps, 10_000)
}

/** The part of a track's policy that limits exit ladders; a bound of 0 is no bound. */
export type ExitBounds = Pick<
  TrackConfig,
  'maxStopLossBps' | 'minTakeProfitBps' | 'maxTakeProfitBps' | 'requireStopLoss' | 'requireTakeProfit'
>
