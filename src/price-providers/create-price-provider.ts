import type { Chain } from '../chain/configured-chain.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { batchesOf } from '../concurrency.ts'
import type { HttpPriceProviderConfig, PriceProviderConfig } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { fetchJson, type PriceObservation, type PriceProvider, propertyOf, toObservation } from './price-provider.ts'

const httpProviders = {
  http: observeCustomHttp,
  coingecko: observeCoinGecko,
  finnhub: observeFinnhub,
}

/** Creates the configured price provider. The chain is the source of the local one. */
export function createPriceProvider(config: PriceProviderConfig, chain: Chain): PriceProvider {
  if (config.kind === 'local') return createLocalProvider(chain)
  const observe = httpProviders[config.kind]
  return { name: config.kind, observe: symbols => observe(config, symbols) }
}

/**
 * Creates the provider for development chains, whose prices are set by hand: it observes the oracle's own prices now,
 * so that they do not become stale. A price that is posted in the meantime is newer, and the oracle keeps that one.
 */
const createLocalProvider = (chain: Chain): PriceProvider => ({
  name: 'local',
  async observe(symbols) {
    const { block, registered } = await readVaultsAndTokens(chain)
    const quotes = new Map(registered.tokens.map(({ symbol, address }) => [symbol, registered.quoteIn(address)]))
    return symbols.map(symbol => {
      const quote = quotes.get(symbol)
      if (!quote?.quoted) return { symbol, reason: 'notKnown' }
      return { symbol, basis: 'token', price: quote.price, observedAt: block.timestamp }
    })
  },
})

/**
 * Queries the operator's own server: `GET {url}?symbols=A,B` returns `{"A": {"price": "182.63", "time": 1790000000}}`.
 * Throws PRICE_PROVIDER_FAILED.
 */
async function observeCustomHttp(
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

const PRO_HOST = 'pro-api.coingecko.com'

/**
 * Queries CoinGecko's `/simple/price` (docs.coingecko.com) for all symbols in one request. The id of a coin is the
 * symbol in lower case unless the configuration names another. Throws PRICE_PROVIDER_FAILED.
 */
async function observeCoinGecko(
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

/** A Worker may wait for this many responses at once. */
const MAX_CONCURRENT_REQUESTS = 6

const FORBIDDEN = 403

/**
 * Queries Finnhub's `/quote` (finnhub.io/docs/api/quote), which takes one symbol per request and returns zeros for an
 * unknown one. A symbol outside of the key's plan is not known. Throws PRICE_PROVIDER_FAILED, also if the plan has
 * none.
 */
async function observeFinnhub(
  { url, key, ids }: HttpPriceProviderConfig,
  symbols: readonly string[],
): Promise<PriceObservation[]> {
  function fetchQuote(symbol: string): Promise<unknown> {
    const request = new URL(`${url}/quote`)
    request.searchParams.set('symbol', ids[symbol] ?? symbol)
    return fetchJson('finnhub', request, key === undefined ? {} : { 'x-finnhub-token': key }, FORBIDDEN)
  }

  const quotes: unknown[] = []
  for (const page of batchesOf(symbols, MAX_CONCURRENT_REQUESTS))
    quotes.push(...(await Promise.all(page.map(fetchQuote))))
  if (quotes.length > 0 && quotes.every(quote => quote === undefined))
    throw refuse('PRICE_PROVIDER_FAILED', { provider: 'finnhub', problem: 'it refuses every symbol' })
  return symbols.map((symbol, index) =>
    toObservation(symbol, propertyOf(quotes[index], 'c'), propertyOf(quotes[index], 't')),
  )
}
