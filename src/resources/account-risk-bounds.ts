import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import { z } from 'zod'
import { bps } from './primitives.ts'

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
