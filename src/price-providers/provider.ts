import type { Config } from '../config.ts'
import { coingecko } from './coingecko.ts'
import { plainHttp } from './custom-http.ts'
import { finnhub } from './finnhub.ts'

/** What a provider says of one symbol: a price with 8 decimals and when it was observed (Unix seconds), or why not. */
export type Observation =
  | { symbol: string; price: bigint; observedAt: bigint }
  | { symbol: string; reason: 'notKnown' | 'invalidPrice' | 'noTime' }

export type PriceProvider = {
  name: string
  /** Answers one observation per symbol, in order. Throws PRICE_PROVIDER_FAILED when the provider does not answer. */
  observe(symbols: readonly string[]): Promise<Observation[]>
}

export type ProviderConfig = Exclude<NonNullable<Config['market']>, { provider: 'local' }>

const providers = { http: plainHttp, coingecko, finnhub }

/** A market-data provider outside. */
export const createProvider = (config: ProviderConfig): PriceProvider => ({
  name: config.provider,
  observe: symbols => providers[config.provider](config, symbols),
})
