import { ask, member, observation } from './fetch-json.ts'
import type { Observation, ProviderConfig } from './provider.ts'

/** A server of one's own: `GET {url}?symbols=A,B` answers `{"A": {"price": "182.63", "time": 1790000000}}`. */
export async function plainHttp({ url, key, ids }: ProviderConfig, symbols: readonly string[]): Promise<Observation[]> {
  const named = symbols.map(symbol => [symbol, ids[symbol] ?? symbol] as const)
  const request = new URL(url)
  request.searchParams.set('symbols', named.map(([, id]) => id).join(','))
  const answer = await ask('http', request, key === undefined ? {} : { authorization: `Bearer ${key}` })
  return named.map(([symbol, id]) => {
    const quote = member(answer, id)
    return observation(symbol, member(quote, 'price'), member(quote, 'time'))
  })
}
