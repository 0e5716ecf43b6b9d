import { isTriggered } from '@agent-trading-service/protocol/exit-triggers'
import { isMarketOpen, reasonOfStalePrice } from '@agent-trading-service/protocol/market-hours'
import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import { watchedPnlBps } from '@agent-trading-service/protocol/pnl-bps'
import {
  type ExitMarket,
  isExitInProgress,
  isOwnerClosing,
  type WatchedPosition,
} from '@agent-trading-service/protocol/position'
import type { Deferral } from './position-entry.ts'

/** Whether the hours of markets count. */
type SessionRule = { respectSessions: boolean }

/**
 * Names the observation of a price. The round alone does not: a report is not posted before something uses it, so all
 * reports until then would be the next round.
 */
export const observationOf = ({ roundId, updatedAt }: Pick<PriceQuote, 'roundId' | 'updatedAt'>): string =>
  `${roundId}@${updatedAt}`

type ExitDecision = 'notReached' | 'due' | Deferral

/**
 * Returns why no rule of a position in a market can fire; undefined if its price is fresh, and from after the last
 * change of the token's multiplier.
 */
export function marketDeferralOf(
  { quote, calendar }: Pick<ExitMarket, 'quote' | 'calendar'>,
  { respectSessions }: SessionRule,
): Deferral | undefined {
  if (!quote.stale) return quote.unsettled ? 'priceUnsettled' : undefined
  return respectSessions ? reasonOfStalePrice(calendar, Number(quote.at)) : 'priceStale'
}

/** Whether the hours of a market count, and it is closed. */
export const isSessionClosed = (
  { quote, calendar }: Pick<ExitMarket, 'quote' | 'calendar'>,
  { respectSessions }: SessionRule,
): boolean => respectSessions && !isMarketOpen(calendar, Number(quote.at))

/**
 * Returns what to do with an open position: `due` if a pending rule's trigger is met, a rule has sold a part of its
 * share, or the agent's owner closes the position, and nothing prevents the sale. A stale or unsettled price hides
 * whether a trigger is met, so it defers first; an owner's sale needs no trigger and waits for no settled price.
 */
export function decideExit(position: WatchedPosition, market: ExitMarket, rule: SessionRule): ExitDecision {
  const marketDeferral = marketDeferralOf(market, rule)
  const isOwnersChoice = marketDeferral === 'priceUnsettled' && isOwnerClosing(position)
  if (marketDeferral !== undefined && !isOwnersChoice) return marketDeferral
  const { quote, decimals, tradingPaused } = market
  const pnl = watchedPnlBps(position, quote.price, decimals)
  const isTriggerMet =
    isOwnerClosing(position) ||
    isExitInProgress(position) ||
    position.exitRules.slice(position.nextRuleIndex).some(rule => isTriggered(rule, pnl))
  if (!isTriggerMet) return 'notReached'
  if (isSessionClosed(market, rule)) return 'marketClosed'
  return tradingPaused ? 'tradingPaused' : 'due'
}
