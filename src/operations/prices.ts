import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { z } from 'zod'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import type { HistoryContext } from '../history/client.ts'
import { presentListedPrice, priceList, symbolList } from '../resources/price.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getPrices = defineOperation(
  {
    id: 'getPrices',
    tool: {
      name: 'svc_get_prices',
      description:
        'Returns oracle prices in USD and their source. While stale, nothing is bought, unless source is reports. Example: {"symbols":"NVDA,AAPL"}',
    },
    method: 'get',
    path: '/prices',
    tag: 'Prices',
    summary: 'Get oracle prices',
    description: 'Returns the on-chain oracle price of every token, or of the requested symbols.',
    query: z.object({
      symbols: symbolList
        .optional()
        .meta({ description: 'Symbols separated by commas', example: 'NVDA,AAPL', 'x-list': 'comma' }),
    }),
    cache: 'isolate',
    output: priceList,
    errors: [502],
  },
  async ({ chain, history }: HistoryContext, { symbols }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const requested = symbols?.map(symbol => ({ symbol, token: findSymbol(registered.tokens, symbol) }))
    const found = requested && new Set(requested.map(({ token }) => token))
    const tokens = registered.tokens.filter(token => found === undefined || found.has(token))
    const dayBefore = await history.pricesDayBefore(
      tokens.map(({ address }) => address),
      block.timestamp,
    )
    const prices = tokens.map(
      token => [token.symbol, presentListedPrice(token, registered.quoteIn(token.address), dayBefore)] as const,
    )
    return {
      chainId: chain.id,
      priceOracle: chain.contracts.PriceOracle,
      prices: Object.fromEntries(prices),
      total: prices.length,
      ...(requested && { missing: requested.filter(({ token }) => token === undefined).map(({ symbol }) => symbol) }),
      asOf: presentAsOf(block),
    }
  },
)
