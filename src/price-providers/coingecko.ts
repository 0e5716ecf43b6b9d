import type { HttpPriceProviderConfig } from '../config/config.ts'
import { fetchJson, type PriceObservation, propertyOf, toObservation } from './price-provider.ts'

const PRO_HOST = 'pro-api.coingecko.com'

/**
 * Queries CoinGecko's `/simple/price` (docs.coingecko.com) for all symbols in one request. The id of a coin is the
 * symbol in lower case unless the configuration names another. Throws PRICE_PROVIDER_FAILED.
 */
export async function observeCoinGecko(
  { url, key, ids }: HttpPriceProviderConfig,
  symbols: readonly string[],
): Promise<PriceObservation[]> {
  const coins = symbols.map(symbol => ({ symbol, id: ids[symbol] ?? symbol.toLowerCase() }))
  const request = new URL(`${url}/simple/price`)
  request.searchParams.set('ids', coins.map(({ id }) => id).join(','))
  request.searchParams.set('vs_currencies', 'usd')
  request.searchParams.set('include_last_updated_at', 'true')
  request.searchParams.set('precision', 'full')
  const keyHeader = request.hostname === PRO_HOST ? 'x-cg-pro-api-key' : 'x-cg-demo-api-key'
  const body = await fetchJson('coingecko', request, key === undefined ? {} : { [keyHeader]: key })
  return coins.map(({ symbol, id }) => {
    const coin = propertyOf(body, id)
    return toObservation(symbol, propertyOf(coin, 'usd'), propertyOf(coin, 'last_updated_at'))
  })
}
