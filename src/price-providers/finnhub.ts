import { ask, member, observation } from './fetch-json.ts'
import type { Observation, ProviderConfig } from './provider.ts'

/** A Worker may have six requests open at once. */
const CONCURRENT = 6

/** Finnhub's `/quote` (finnhub.io/docs/api/quote): one symbol per request; an unknown symbol is answered with zeros. */
export async function finnhub({ url, key, ids }: ProviderConfig, symbols: readonly string[]): Promise<Observation[]> {
  const observations: Observation[] = []
  for (let from = 0; from < symbols.length; from += CONCURRENT) {
    const batch = symbols.slice(from, from + CONCURRENT).map(async symbol => {
      const request = new URL(`${url}/quote`)
      request.searchParams.set('symbol', ids[symbol] ?? symbol)
      const quote = await ask('finnhub', request, key === undefined ? {} : { 'x-finnhub-token': key })
      return observation(symbol, member(quote, 'c'), member(quote, 't'))
    })
    observations.push(...(await Promise.all(batch)))
  }
  return observations
}
