import type { Chain } from '../chain/configured-chain.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import type { PriceProviderConfig } from '../config/config.ts'
import { observeCoinGecko } from './coingecko.ts'
import { observeCustomHttp } from './custom-http.ts'
import { observeFinnhub } from './finnhub.ts'
import type { PriceProvider } from './price-provider.ts'

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
