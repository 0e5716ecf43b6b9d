import { z } from 'zod'
import type { ExitBounds, TrackConfig } from '../protocol/track-config.ts'
import { bps, usdc } from './primitives.ts'

export const allocation = z
  .object({
    cap: usdc('Maximum total cost of all open positions'),
    used: usdc('Total cost of the open positions'),
    available: usdc('What may still be invested'),
  })
  .meta({ id: 'Allocation' })

export const presentAllocation = ({ cap, used }: { cap: bigint; used: bigint }): z.input<typeof allocation> => ({
  cap: `${cap}`,
  used: `${used}`,
  available: `${cap > used ? cap - used : 0n}`,
})

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
    maxDrawdownBps: bps('Drawdown limit; stored, but not checked per intent'),
  })
  .meta({ id: 'AccountRiskBounds' })

export const presentRiskBounds = ({
  maxDailyLossBps,
  maxDrawdownBps,
}: TrackConfig): z.input<typeof accountRiskBounds> => ({
  maxDailyLossBps: Number(maxDailyLossBps),
  maxDrawdownBps: Number(maxDrawdownBps),
})
