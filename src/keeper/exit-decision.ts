import { marketHours } from '../catalog/market-hours.ts'
import { isTriggered, pnlBps } from '../protocol/exit-ladder-rules.ts'
import type { ExitMarket } from '../protocol/pending-exits.ts'
import type { WatchedPosition } from '../protocol/position.ts'
import type { Deferral } from './last-exit-result.ts'

export type ExitDecision = 'notReached' | 'due' | Deferral

/**
 * Returns what to do with an open position: `due` if a pending rule's trigger is met and nothing prevents the exit. A
 * stale price hides whether a trigger is met, so it defers first. `respectSessions` makes equity market hours count.
 */
export function decideExit(
  position: WatchedPosition,
  { quote, tradingPaused }: ExitMarket,
  { symbol, at, respectSessions }: { symbol: string; at: bigint; respectSessions: boolean },
): ExitDecision {
  const pnl = pnlBps(quote.price, position.entryPriceUsdc)
  const isTriggerMet = position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  const isMarketClosed = respectSessions && marketHours(symbol, Number(at)).session === 'closed'
  if (isMarketClosed && (isTriggerMet || quote.stale)) return 'marketClosed'
  if (quote.stale) return 'priceStale'
  if (!isTriggerMet) return 'notReached'
  return tradingPaused ? 'tradingPaused' : 'due'
}
