import { ask, member, observation } from './fetch-json.ts'
import type { Observation, ProviderConfig } from './provider.ts'

const PRO_HOST = 'pro-api.coingecko.com'

/** CoinGecko's `/simple/price` (docs.coingecko.com): all coins in one request; a coin without an id is its symbol. */
export async function coingecko({ url, key, ids }: ProviderConfig, symbols: readonly string[]): Promise<Observation[]> {
  const named = symbols.map(symbol => [symbol, ids[symbol] ?? symbol.toLowerCase()] as const)
  const request = new URL(`${url}/simple/price`)
  request.search = `${new URLSearchParams({
    ids: named.map(([, id]) => id).join(','),
    vs_currencies: 'usd',
    include_last_updated_at: 'true',
    precision: 'full',
  })}`
  const keyHeader = request.hostname === PRO_HOST ? 'x-cg-pro-api-key' : 'x-cg-demo-api-key'
  const answer = await ask('coingecko', request, key === undefined ? {} : { [keyHeader]: key })
  return named.map(([symbol, id]) => {
    const coin = member(answer, id)
    return observation(symbol, member(coin, 'usd'), member(coin, 'last_updated_at'))
  })
}
