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

/**
 * What says whether the session of a token is open: `at` is Unix seconds, `respectSessions` makes equity market hours
 * count.
 */
export type MarketSession = { symbol: string; at: bigint; respectSessions: boolean }

type ExitDecision = 'notReached' | 'due' | Deferral

/**
 * Returns why no rule of a position in a market can fire; undefined if its price is fresh, and from after the last
 * change of the token's multiplier.
 */
export function marketDeferralOf({ quote }: Pick<ExitMarket, 'quote'>, session: MarketSession): Deferral | undefined {
  if (!quote.stale) return quote.unsettled ? 'priceUnsettled' : undefined
  return isSessionClosed(session) ? 'marketClosed' : 'priceStale'
}

/** Whether the hours of a market of equities count, and it is closed. */
export const isSessionClosed = ({ symbol, at, respectSessions }: MarketSession): boolean =>
  respectSessions && marketHours(symbol, Number(at)).session === 'closed'

/**
 * Returns what to do with an open position: `due` if a pending rule's trigger is met, a rule has sold a part of its
 * share, or the agent's owner closes the position, and nothing prevents the sale. A stale or unsettled price hides
 * whether a trigger is met, so it defers first; an owner's sale needs no trigger and waits for no settled price.
 */
export function decideExit(position: WatchedPosition, market: ExitMarket, session: MarketSession): ExitDecision {
  const marketDeferral = marketDeferralOf(market, session)
  const isOwnersChoice = marketDeferral === 'priceUnsettled' && isOwnerClosing(position)
  if (marketDeferral !== undefined && !isOwnersChoice) return marketDeferral
  const { quote, decimals, tradingPaused } = market
  const pnl = watchedPnlBps(position, quote.price, decimals)
  const isTriggerMet =
    isOwnerClosing(position) ||
    isExitInProgress(position) ||
    position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  if (!isTriggerMet) return 'notReached'
  if (isSessionClosed(session)) return 'marketClosed'
  return tradingPaused ? 'tradingPaused' : 'due'
}
