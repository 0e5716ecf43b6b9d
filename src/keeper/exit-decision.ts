import { isTriggered } from '@agent-trading-service/protocol/exit-triggers'
import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { watchedPnlBps } from '@agent-trading-service/protocol/pnl-bps'
import {
  type ExitMarket,
  isExitInProgress,
  isOwnerClosing,
  type WatchedPosition,
} from '@agent-trading-service/protocol/position'
import type { Deferral } from './position-entry.ts'

export type ExitDecision = 'notReached' | 'due' | Deferral

/** Returns why no position in a market can be sold; undefined if its price is fresh. */
export function marketDeferralOf(
  { quote }: Pick<ExitMarket, 'quote'>,
  { symbol, at, respectSessions }: { symbol: string; at: bigint; respectSessions: boolean },
): Deferral | undefined {
  if (!quote.stale) return undefined
  return respectSessions && isClosed(symbol, at) ? 'marketClosed' : 'priceStale'
}

/** Whether a market of equities is closed at a time in Unix seconds. */
export const isClosed = (symbol: string, at: bigint): boolean => marketHours(symbol, Number(at)).session === 'closed'

/**
 * Returns what to do with an open position: `due` if a pending rule's trigger is met, a rule has sold a part of its
 * share, or the agent's owner closes the position, and nothing prevents the sale. A stale price hides whether a trigger is met, so it defers first.
 * `respectSessions` makes equity market hours count.
 */
export function decideExit(
  position: WatchedPosition,
  market: ExitMarket,
  session: { symbol: string; at: bigint; respectSessions: boolean },
): ExitDecision {
  const marketDeferral = marketDeferralOf(market, session)
  if (marketDeferral !== undefined) return marketDeferral
  const { quote, decimals, tradingPaused } = market
  const pnl = watchedPnlBps(position, quote.price, decimals)
  const isTriggerMet =
    isOwnerClosing(position) ||
    isExitInProgress(position) ||
    position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  if (!isTriggerMet) return 'notReached'
  if (session.respectSessions && isClosed(session.symbol, session.at)) return 'marketClosed'
  return tradingPaused ? 'tradingPaused' : 'due'
}
