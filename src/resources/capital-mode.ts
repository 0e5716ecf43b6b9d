import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { z } from 'zod'

/** The capital of a position, a trade or an allocation. */
export const capitalMode = z.enum(['Simulated', 'Real']).nullable().meta({
  description:
    "Simulated: on paper; no token or USDC moves. Real: the vault's capital. Null if the deployment has no capital modes",
  example: 'Real',
})

/** Presents a `CapitalMode` of the contracts; undefined in a deployment without the extension. */
export function presentCapitalMode(mode: number | undefined): z.input<typeof capitalMode> {
  if (mode === undefined) return null
  return mode === CapitalMode.Simulated ? 'Simulated' : 'Real'
}
