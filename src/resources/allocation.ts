import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import { z } from 'zod'
import { present } from './present.ts'
import { bps, capitalMode, presentCapitalMode, usdc } from './primitives.ts'

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
  return present(allocation, {
    cap,
    effectiveCap,
    used,
    available: effectiveCap > used ? effectiveCap - used : 0n,
    capitalMode: presentCapitalMode(capitalMode),
  })
}

export const accountRiskBounds = z
  .object({
    maxDailyLossBps: bps('Realized daily loss, relative to the allocation cap, that blocks new risk; 0 means no limit'),
    maxDrawdownBps: bps(
      'Drawdown limit. It suspends buying if the deployment has a trade policy; without one it is stored, but not checked per intent',
    ),
  })
  .meta({ id: 'AccountRiskBounds' })

export const presentRiskBounds = (config: TrackConfig): z.input<typeof accountRiskBounds> =>
  present(accountRiskBounds, config)
