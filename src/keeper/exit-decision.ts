import { marketHours } from '../catalog/market-hours.ts'
import type { ExitMarket, WatchedPosition } from '../chain/exit-execution.ts'
import { isTriggered, pnlBps } from '../protocol/exit-ladder.ts'
import type { Deferral } from './client.ts'

export type Judgement = 'notReached' | 'due' | Deferral

/**
 * What is to be done about an open position: `due` when a pending rule's trigger is met and nothing stands against it.
 * Without a fresh price nothing is known, so that waits first. Sessions count where `respectSessions` says so.
 */
export function judge(
  position: WatchedPosition,
  { quote, tradingPaused }: ExitMarket,
  { symbol, at, respectSessions }: { symbol: string; at: bigint; respectSessions: boolean },
): Judgement {
  const pnl = pnlBps(quote.price, position.entryPriceUsdc)
  const isMet = position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  const isClosed = respectSessions && marketHours(symbol, Number(at)).session === 'closed'
  if (isClosed && (isMet || quote.stale)) return 'marketClosed'
  if (quote.stale) return 'priceStale'
  if (!isMet) return 'notReached'
  return tradingPaused ? 'tradingPaused' : 'due'
}
