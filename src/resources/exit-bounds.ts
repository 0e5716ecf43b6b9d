import type { ExitBounds } from '@agent-trading-service/protocol/vault-track-config'
import { z } from 'zod'
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
