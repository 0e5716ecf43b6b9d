import { z } from 'zod'
import type { ExitBounds, TrackConfig } from '../protocol/track-config.ts'
import { bps } from './primitives.ts'

export const exitBounds = z
  .object({
    maxStopLossBps: bps('Deepest allowed stop-loss; 0 means no bound'),
    minTakeProfitBps: bps('Lowest allowed take-profit; 0 means no bound'),
    maxTakeProfitBps: bps('Highest allowed take-profit; 0 means no bound'),
    requireStopLoss: z.boolean(),
    requireTakeProfit: z.boolean(),
  })
  .meta({ id: 'ExitBounds' })

export const presentExitBounds = (bounds: ExitBounds): z.input<typeof exitBounds> => ({
  maxStopLossBps: Number(bounds.maxStopLossBps),
  minTakeProfitBps: Number(bounds.minTakeProfitBps),
  maxTakeProfitBps: Number(bounds.maxTakeProfitBps),
  requireStopLoss: bounds.requireStopLoss,
  requireTakeProfit: bounds.requireTakeProfit,
})

export const accountRiskBounds = z
  .object({
    maxDailyLossBps: bps('Realized daily loss, relative to the allocation cap, that blocks new risk; 0 means no limit'),
    maxDrawdownBps: bps(
      'Drawdown limit. It suspends buying if the deployment has a trade policy; without one it is stored, but not checked per intent',
    ),
  })
  .meta({ id: 'AccountRiskBounds' })

export const presentRiskBounds = ({
  maxDailyLossBps,
  maxDrawdownBps,
}: TrackConfig): z.input<typeof accountRiskBounds> => ({
  maxDailyLossBps: Number(maxDailyLossBps),
  maxDrawdownBps: Number(maxDrawdownBps),
})
