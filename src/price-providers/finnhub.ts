import type { HttpPriceProviderConfig } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { fetchJson, type PriceObservation, propertyOf, toObservation } from './price-provider.ts'

/** A Worker may wait for this many responses at once. */
const MAX_CONCURRENT_REQUESTS = 6

const FORBIDDEN = 403

/**
 * Queries Finnhub's `/quote` (finnhub.io/docs/api/quote), which takes one symbol per request and returns zeros for an
 * unknown one. A symbol outside of the key's plan is not known. Throws PRICE_PROVIDER_FAILED, also if the plan has
 * none.
 */
export async function observeFinnhub(
  { url, key, ids }: HttpPriceProviderConfig,
  symbols: readonly string[],
): Promise<PriceObservation[]> {
  function fetchQuote(symbol: string): Promise<unknown> {
    const request = new URL(`${url}/quote`)
    request.searchParams.set('symbol', ids[symbol] ?? symbol)
    return fetchJson('finnhub', request, key === undefined ? {} : { 'x-finnhub-token': key }, FORBIDDEN)
  }

  const quotes: unknown[] = []
  for (let from = 0; from < symbols.length; from += MAX_CONCURRENT_REQUESTS) {
    const page = symbols.slice(from, from + MAX_CONCURRENT_REQUESTS)
    quotes.push(...(await Promise.all(page.map(fetchQuote))))
  }
  if (quotes.length > 0 && quotes.every(quote => quote === undefined))
    throw refuse('PRICE_PROVIDER_FAILED', { provider: 'finnhub', problem: 'it refuses every symbol' })
  return symbols.map((symbol, index) =>
    toObservation(symbol, propertyOf(quotes[index], 'c'), propertyOf(quotes[index], 't')),
  )
}
