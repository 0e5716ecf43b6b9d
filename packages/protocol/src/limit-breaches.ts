import type { TrackConfig } from './vault-track-config.ts'

const BPS = 10_000n

/** The state of an agent that limits apply to, in USDC base units. */
export type Exposure = { cap: bigint; drawdownBps: bigint; dailyRealizedPnlUsdc: bigint }

/** The limits that an agent has breached, and the day's loss next to its maximum, in USDC base units. */
export type LimitBreaches = {
  drawdown: boolean
  dailyLoss: boolean
  maxDailyLossUsdc: bigint
  dailyLossUsedUsdc: bigint
}

/** Returns which limits of its track an agent has breached: reached or exceeded. A limit of 0 is never breached. */
export function limitBreaches(
  { cap, drawdownBps, dailyRealizedPnlUsdc }: Exposure,
  { maxDrawdownBps, maxDailyLossBps }: Pick<TrackConfig, 'maxDrawdownBps' | 'maxDailyLossBps'>,
): LimitBreaches {
  const maxDailyLossUsdc = (cap * maxDailyLossBps) / BPS
  const dailyLossUsedUsdc = dailyRealizedPnlUsdc < 0n ? -dailyRealizedPnlUsdc : 0n
  return {
    drawdown: maxDrawdownBps > 0n && drawdownBps >= maxDrawdownBps,
    dailyLoss: maxDailyLossBps > 0n && dailyLossUsedUsdc >= maxDailyLossUsdc,
    maxDailyLossUsdc,
    dailyLossUsedUsdc,
  }
}
