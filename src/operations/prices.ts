import { z } from 'zod'
import { readMarket } from '../chain/listings.ts'
import { presentOracleQuote, priceList } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const getPrices = defineOperation(
  {
    id: 'getPrices',
    tool: 'svc_get_prices',
    method: 'get',
    path: '/prices',
    tag: 'Prices',
    summary: 'Oracle prices by symbol',
    description: 'The on-chain oracle quote of every token, or of the symbols asked for.',
    query: z.object({
      symbols: z
        .string()
        .max(1000)
        .transform(text => text.split(',').map(symbol => symbol.trim()))
        .refine(symbols => symbols.every(symbol => symbol.length > 0), 'must be symbols separated by commas')
        .optional()
        .meta({ description: 'Symbols separated by commas', example: 'NVDA,AAPL' }),
    }),
    remembered: true,
    status: 200,
    output: priceList,
    errors: [400, 500, 502],
  },
  async ({ chain }, { symbols }) => {
    const { block, market } = await readMarket(chain)
    const asked = symbols && new Set(symbols)
    const tokens = market.tokens.filter(({ symbol }) => asked === undefined || asked.has(symbol))
    const prices = tokens.map(
      token => [token.symbol, presentOracleQuote(token, market.quoteIn(token.address))] as const,
    )
    const found = new Set(tokens.map(({ symbol }) => symbol))
    return {
      chainId: chain.id,
      priceOracle: chain.contracts.PriceOracle,
      prices: Object.fromEntries(prices),
      total: prices.length,
      ...(asked && { missing: [...asked].filter(symbol => !found.has(symbol)) }),
      asOf: presentBlock(block),
    }
  },
)
