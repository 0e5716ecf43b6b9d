import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { z } from 'zod'
import type { Config } from '../config/config.ts'
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

/** Messages about a closed market: the remedy of a stale price, and the warning while the price is still fresh. */
export type MarketClosedTexts = { remedy: string; warning: string }

/**
 * Returns the messages about a token whose market is closed at a time in Unix seconds; undefined while it is open, or if
 * the deployment ignores market sessions.
 */
export function marketClosedTexts(
  { respectSessions }: Config,
  symbol: string,
  at: bigint,
): MarketClosedTexts | undefined {
  const { session, nextOpen } = marketHours(symbol, Number(at))
  if (!respectSessions || session !== 'closed') return undefined
  const until = nextOpen === undefined ? 'its next session' : `${nextOpen} (Unix seconds)`
  return {
    remedy: `The market of ${symbol} is closed. Wait until ${until}, when prices resume.`,
    warning: `The market of ${symbol} is closed: its price does not move and exits wait until ${until}.`,
  }
}
