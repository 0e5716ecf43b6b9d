import { marketHours } from '@agent-trading-service/protocol/market-hours'
import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'

/** How long the first price of a market may take after its opening, in seconds. */
const FIRST_PRICE_SECONDS = 300

/** The price of a token, and whether it is late. */
export type JudgedPrice = {
  symbol: string
  quote: PriceQuote
  maxAgeSeconds: bigint
  isMarketClosed: boolean
  /** Unix seconds; undefined unless the market is closed and the calendar reaches so far. */
  nextOpen: number | undefined
  /** Whether it is too old to trade although its market trades. */
  isOverdue: boolean
}

/**
 * Judges the prices of all tokens. A price is overdue only while its market trades: a closed one has no new price to
 * post, whatever MARKET_SESSIONS says. `hasNone` is whether nothing can be traded because prices are overdue, and
 * `secondsLeft` the time until the first fresh price of an open market is too old; null if there is none.
 */
export function judgePrices({ tokens, quoteIn, maxAgeIn }: Pick<VaultsAndTokens, 'tokens' | 'quoteIn' | 'maxAgeIn'>) {
  const prices = tokens.map(({ symbol, address }) => judgePrice(symbol, quoteIn(address), maxAgeIn(address)))
  const overdue = prices.flatMap(({ symbol, isOverdue }) => (isOverdue ? [symbol] : []))
  const closed = prices.filter(({ isMarketClosed }) => isMarketClosed)
  const openings = closed.flatMap(({ nextOpen }) => nextOpen ?? [])
  const left = prices.flatMap(({ quote: { stale, updatedAt, at }, maxAgeSeconds, isMarketClosed }) =>
    stale || maxAgeSeconds === 0n || isMarketClosed ? [] : [Number(updatedAt + maxAgeSeconds - at)],
  )
  return {
    prices,
    overdue,
    hasNone: prices.every(({ quote }) => quote.stale) && (overdue.length > 0 || prices.length === 0),
    market: closed.length > 0 && closed.length === prices.length ? ('closed' as const) : ('open' as const),
    nextOpen: openings.length === 0 ? undefined : Math.min(...openings),
    secondsLeft: left.length === 0 ? null : Math.min(...left),
  }
}

function judgePrice(symbol: string, quote: PriceQuote, maxAgeSeconds: bigint): JudgedPrice {
  const { session, nextOpen } = marketHours(symbol, Number(quote.at))
  const before = marketHours(symbol, Number(quote.at) - FIRST_PRICE_SECONDS)
  const isMarketClosed = session === 'closed'
  const isOverdue = quote.stale && !isMarketClosed && before.session !== 'closed'
  return { symbol, quote, maxAgeSeconds, isMarketClosed, nextOpen, isOverdue }
}
