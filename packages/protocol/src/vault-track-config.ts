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

/** The part of a track's policy that limits exit ladders; a bound of 0 is no bound. */
export type ExitBounds = Pick<
  TrackConfig,
  'maxStopLossBps' | 'minTakeProfitBps' | 'maxTakeProfitBps' | 'requireStopLoss' | 'requireTakeProfit'
>
