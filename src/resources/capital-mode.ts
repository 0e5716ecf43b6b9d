import { z } from 'zod'
import { CapitalMode } from '../protocol/enums.ts'

/** The capital of a position, a trade or an allocation. */
export const capitalMode = z.enum(['Simulated', 'Real']).nullable().meta({
  description:
    "Simulated: the trade is on paper; it moves no token and no USDC, but has the same prices, limits and PnL. Real: the vault's capital. Null if the deployment has no capital modes",
  example: 'Real',
})

/** Presents a `CapitalMode` of the contracts; undefined in a deployment without the extension. */
export function presentCapitalMode(mode: number | undefined): z.input<typeof capitalMode> {
  if (mode === undefined) return null
  return mode === CapitalMode.Simulated ? 'Simulated' : 'Real'
}
