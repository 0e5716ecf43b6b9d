import type { HttpPriceProviderConfig } from '../config.ts'
import { fetchJson } from './fetch-json.ts'
import { propertyOf, toObservation } from './parse-observation.ts'
import type { PriceObservation } from './price-provider.ts'

/** A Worker may wait for this many responses at once. */
const MAX_CONCURRENT_REQUESTS = 6

/**
 * Queries Finnhub's `/quote` (finnhub.io/docs/api/quote), which takes one symbol per request and returns zeros for an
 * unknown one. A symbol that it refuses, for example one outside of the key's plan, is not known; the others have their
 * prices. Throws PRICE_PROVIDER_FAILED if every request fails.
 */
export async function observeFinnhub(
  { url, key, ids }: HttpPriceProviderConfig,
  symbols: readonly string[],
): Promise<PriceObservation[]> {
  async function observe(symbol: string): Promise<PriceObservation> {
    const request = new URL(`${url}/quote`)
    request.searchParams.set('symbol', ids[symbol] ?? symbol)
    const quote = await fetchJson('finnhub', request, key === undefined ? {} : { 'x-finnhub-token': key })
    return toObservation(symbol, propertyOf(quote, 'c'), propertyOf(quote, 't'))
  }

  const outcomes: PromiseSettledResult<PriceObservation>[] = []
  for (let from = 0; from < symbols.length; from += MAX_CONCURRENT_REQUESTS) {
    const page = symbols.slice(from, from + MAX_CONCURRENT_REQUESTS)
    outcomes.push(...(await Promise.allSettled(page.map(observe))))
  }
  const [first] = outcomes
  if (first?.status === 'rejected' && outcomes.every(({ status }) => status === 'rejected')) throw first.reason
  return outcomes.map((outcome, index) =>
    outcome.status === 'fulfilled' ? outcome.value : { symbol: symbols[index] as string, reason: 'notKnown' },
  )
}
