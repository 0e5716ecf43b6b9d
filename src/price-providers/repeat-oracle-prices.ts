import type { Chain } from '../chain/configured-chain.ts'
import { readMarket } from '../chain/read-market.ts'
import type { PriceProvider } from './price-provider.ts'

/**
 * Creates the provider for development chains, whose prices are set by hand: it observes the oracle's own prices now, so
 * that they do not become stale. A price that is posted in the meantime is newer, and the oracle keeps that one.
 */
export const createLocalProvider = (chain: Chain): PriceProvider => ({
  name: 'local',
  async observe(symbols) {
    const { block, market } = await readMarket(chain)
    const quotes = new Map(market.tokens.map(({ symbol, address }) => [symbol, market.quoteIn(address)]))
    return symbols.map(symbol => {
      const quote = quotes.get(symbol)
      if (!quote?.quoted) return { symbol, reason: 'notKnown' }
      return { symbol, price: quote.price, observedAt: block.timestamp }
    })
  },
})
