import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { z } from 'zod'
import { unixSeconds } from './primitives.ts'

export const marketSession = z
  .object({
    session: z.enum(['regular', 'extended', 'closed', 'continuous']).meta({
      description:
        'regular: the hours of the exchange. extended: the rest of the 24/5 week. closed: weekend or holiday. continuous: not an equity, always open',
    }),
    nextOpen: unixSeconds('When it opens next; null unless closed').nullable(),
  })
  .meta({ id: 'MarketSession', description: 'Whether the market behind the price is open' })

/** Presents the market session of a token at a time in Unix seconds. */
export function presentMarketSession(symbol: string, at: bigint): z.input<typeof marketSession> {
  const { session, nextOpen } = marketHours(symbol, Number(at))
  return { session, nextOpen: nextOpen === undefined ? null : `${nextOpen}` }
}
