import { marketHours } from '../catalog/market-hours.ts'
import type { Config } from '../config.ts'

/** That the market of a token is closed, in words: for a price that is stale, and for one that is not yet. */
export type Closure = { remedy: string; warning: string }

/** What a closed market means for a token at a time in Unix seconds; undefined while it is open or where sessions do not count. */
export function closureOf({ respectSessions }: Config, symbol: string, at: bigint): Closure | undefined {
  const { session, nextOpen } = marketHours(symbol, Number(at))
  if (!respectSessions || session !== 'closed') return undefined
  const until = nextOpen === undefined ? 'its next session' : `${nextOpen} (Unix seconds)`
  return {
    remedy: `The market of ${symbol} is closed: wait for ${until}, when its price comes back.`,
    warning: `The market of ${symbol} is closed: until ${until} its price stands still, and exits wait.`,
  }
}
