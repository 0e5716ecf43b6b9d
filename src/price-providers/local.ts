import type { Chain } from '../chain/chain.ts'
import { readMarket } from '../chain/listings.ts'
import type { PriceProvider } from './provider.ts'

/**
 * The provider of the embedded chain, whose prices are moved by hand: it observes now what the oracle holds, so that a price
 * does not grow old by itself. A price that is posted meanwhile is newer, and the oracle keeps that one.
 */
export const localProvider = (chain: Chain): PriceProvider => ({
  name: 'local',
  async observe(symbols) {
    const { block, market } = await readMarket(chain)
    const held = new Map(market.tokens.map(({ symbol, address }) => [symbol, market.quoteIn(address)]))
    return symbols.map(symbol => {
      const { quoted = false, price = 0n } = held.get(symbol) ?? {}
      return quoted ? { symbol, price, observedAt: block.timestamp } : { symbol, reason: 'notKnown' }
    })
  },
})
