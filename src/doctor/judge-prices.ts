import { hasTradedLongEnough, marketHours } from '@agent-trading-service/protocol/market-hours'
import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { ListingSession } from '@agent-trading-service/protocol/token-description'
import type { Token, VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'

/** The price of a token, and whether it is late. */
export type JudgedPrice = {
  symbol: string
  quote: PriceQuote
  maxAgeSeconds: bigint
  isMarketClosed: boolean
  /** Unix seconds; undefined unless the market is closed. */
  nextOpen: number | undefined
  /** Whether it is too old to trade although its market trades. */
  isOverdue: boolean
}

/**
 * Judges the prices of all tokens. A price is overdue only in the hours in which its provider has new ones: a closed
 * market has none to post, whatever MARKET_SESSIONS says. `hasNone` is whether nothing can be traded because prices are
 * overdue, and `secondsLeft` the time until the first fresh price of an open market is too old; null if there is none.
 */
export function judgePrices(
  {
    tokens,
    quoteIn,
    maxAgeIn,
  }: Pick<VaultsAndTokens, 'quoteIn' | 'maxAgeIn'> & {
    tokens: readonly Pick<Token, 'symbol' | 'address' | 'session'>[]
  },
  calendarOf: (calendar: ListingSession) => ListingSession = calendar => calendar,
) {
  const prices = tokens.map(({ symbol, address, ...token }): JudgedPrice => {
    const quote = quoteIn(address)
    const calendar = calendarOf(token.session)
    const { session, nextOpen } = marketHours(calendar, Number(quote.at))
    const isOpen = session !== 'closed'
    // Of the other sources, each trade brings a price along.
    const isOverdue = quote.stale && quote.source === 'updater' && hasTradedLongEnough(calendar, Number(quote.at))
    return {
      symbol,
      quote,
      maxAgeSeconds: maxAgeIn(address),
      isMarketClosed: !isOpen,
      nextOpen,
      isOverdue,
    }
  })
  const overdue = prices.flatMap(({ symbol, isOverdue }) => (isOverdue ? [symbol] : []))
  const closed = prices.filter(({ isMarketClosed }) => isMarketClosed)
  const openings = closed.flatMap(({ nextOpen }) => nextOpen ?? [])
  const left = prices.flatMap(({ quote: { stale, updatedAt, at, source }, maxAgeSeconds, isMarketClosed }) =>
    source !== 'updater' || stale || maxAgeSeconds === 0n || isMarketClosed
      ? []
      : [Number(updatedAt + maxAgeSeconds - at)],
  )
  return {
    prices,
    overdue,
    unsettled: prices.flatMap(({ symbol, quote }) => (quote.unsettled ? [symbol] : [])),
    hasNone: prices.every(({ quote }) => quote.stale) && (overdue.length > 0 || prices.length === 0),
    market: closed.length > 0 && closed.length === prices.length ? ('closed' as const) : ('open' as const),
    nextOpen: openings.length === 0 ? undefined : Math.min(...openings),
    secondsLeft: left.length === 0 ? null : Math.min(...left),
  }
}
