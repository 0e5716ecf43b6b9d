import { marketHours } from '../catalog/market-hours.ts'
import { isTriggered } from '../protocol/exit-triggers.ts'
import { watchedPnlBps } from '../protocol/pnl-bps.ts'
import { type ExitMarket, isExitInProgress, isOwnerClosing, type WatchedPosition } from '../protocol/position.ts'
import type { Deferral } from './last-exit-result.ts'

export type ExitDecision = 'notReached' | 'due' | Deferral

/**
 * Returns what to do with an open position: `due` if a pending rule's trigger is met, a rule has sold a part of its
 * share, or the agent's owner closes the position, and nothing prevents the sale. A stale price hides whether a trigger is met, so it defers first.
 * `respectSessions` makes equity market hours count.
 */
export function decideExit(
  position: WatchedPosition,
  { quote, decimals, tradingPaused }: ExitMarket,
  { symbol, at, respectSessions }: { symbol: string; at: bigint; respectSessions: boolean },
): ExitDecision {
  const pnl = watchedPnlBps(position, quote.price, decimals)
  const isTriggerMet =
    isOwnerClosing(position) ||
    isExitInProgress(position) ||
    position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  const isMarketClosed = respectSessions && marketHours(symbol, Number(at)).session === 'closed'
  if (isMarketClosed && (isTriggerMet || quote.stale)) return 'marketClosed'
  if (quote.stale) return 'priceStale'
  if (!isTriggerMet) return 'notReached'
  return tradingPaused ? 'tradingPaused' : 'due'
}
