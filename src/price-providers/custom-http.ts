import type { HttpPriceProviderConfig } from '../config/config.ts'
import { fetchJson, type PriceObservation, propertyOf, toObservation } from './price-provider.ts'

/**
 * Queries the operator's own server: `GET {url}?symbols=A,B` returns `{"A": {"price": "182.63", "time": 1790000000}}`.
 * Throws PRICE_PROVIDER_FAILED.
 */
export async function observeCustomHttp(
  { url, key, ids }: HttpPriceProviderConfig,
  symbols: readonly string[],
): Promise<PriceObservation[]> {
  const quotes = symbols.map(symbol => ({ symbol, id: ids[symbol] ?? symbol }))
  const request = new URL(url)
  request.searchParams.set('symbols', quotes.map(({ id }) => id).join(','))
  const body = await fetchJson('http', request, key === undefined ? {} : { authorization: `Bearer ${key}` })
  return quotes.map(({ symbol, id }) => {
    const quote = propertyOf(body, id)
    return toObservation(symbol, propertyOf(quote, 'price'), propertyOf(quote, 'time'))
  })
}
