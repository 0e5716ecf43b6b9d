import { z } from 'zod'
import type { ExitBounds, TrackConfig } from '../protocol/track-config.ts'
import { capitalMode, presentCapitalMode } from './capital-mode.ts'
import { bps, usdc } from './primitives.ts'

export const allocation = z
  .object({
    cap: usdc('Maximum total cost of all open positions'),
    effectiveCap: usdc(
      'The cap that the next intent is checked against: less the realized loss on the track, and in proportion if all caps of the vault exceed its assets; the cap itself if the deployment does not compute it',
    ),
    used: usdc('Total cost of the open positions'),
    available: usdc('What may still be invested: effectiveCap less used'),
    capitalMode,
  })
  .meta({ id: 'Allocation' })

/** Presents an allocation; `effectiveCap` and `capitalMode` are undefined without the extension. */
export function presentAllocation({
  cap,
  used,
  effectiveCap = cap,
  capitalMode,
}: {
  cap: bigint
  used: bigint
  effectiveCap: bigint | undefined
  capitalMode: number | undefined
}): z.input<typeof allocation> {
  return {
    cap: `${cap}`,
    effectiveCap: `${effectiveCap}`,
    used: `${used}`,
    available: `${effectiveCap > used ? effectiveCap - used : 0n}`,
    capitalMode: presentCapitalMode(capitalMode),
  }
}

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
