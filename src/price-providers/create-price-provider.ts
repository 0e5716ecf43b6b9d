import type { Chain } from '../chain/configured-chain.ts'
import type { PriceProviderConfig } from '../config/config.ts'
import { observeCoinGecko } from './coingecko.ts'
import { observeCustomHttp } from './custom-http.ts'
import { observeFinnhub } from './finnhub.ts'
import type { PriceProvider } from './price-provider.ts'
import { createLocalProvider } from './repeat-oracle-prices.ts'

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
