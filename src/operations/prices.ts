import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { z } from 'zod'
import { NO_PRICES } from '../chain/carried-prices.ts'
import { findVault } from '../chain/find-vault.ts'
import { provenTokensOf, withNewestPrices } from '../chain/newest-prices.ts'
import { readTree } from '../chain/read-tree.ts'
import { readPrices, readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { tokensBySymbols } from '../chain/token-symbols.ts'
import type { HistoryContext } from '../history/client.ts'
import { carriedPrices, presentListedPrice, priceList, symbolList } from '../resources/price.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { vaultParams } from './vaults.ts'

export const getPrices = defineOperation(
  {
    id: 'getPrices',
    tool: {
      name: 'svc_get_prices',
      description:
        'Returns oracle prices in USD and their source. While stale, nothing is bought, unless source is reports. Example: {"symbols":"NVDA,AAPL"}',
    },
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
    const { block, registered } = await readPrices(chain)
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

// No tool: a model holds no key that sends transactions.

export const getPriceReports = defineOperation(
  {
    id: 'getPriceReports',
    path: '/prices/reports',
    tag: 'Prices',
    summary: 'Get the prices that a transaction brings along',
    description:
      "Returns the newest signed reports, and the tokens with a push feed, of what a vault holds and of `symbols`. Whoever sends a deposit, a redemption or a promotion wraps its call as `withPrices(reports, feeds, oracle, call)` of the same contract; `oracle` is the vault's `priceOracle()`. Both lists are empty where the updater posts every price; a token whose market is closed has no report.",
    query: z.object({
      vault: vaultParams.shape.id.optional(),
      symbols: symbolList
        .optional()
        .meta({ description: 'Symbols separated by commas', example: 'NVDA,AAPL', 'x-list': 'comma' }),
    }),
    requestKind: 'quotes',
    output: carriedPrices,
  },
  async ({ chain }, { vault, symbols = [] }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const held = vault === undefined ? [] : await provenTokensOf(chain, findVault(registered, vault).address)
    const priced = await withNewestPrices(chain, [...held, ...(await tokensBySymbols(chain, symbols))])
    // What the oracle refuses of one token would revert a call that could do without it.
    const { carried } = priced.carried ? await readTree(priced, {}) : priced
    const { reports, feeds } = carried ?? NO_PRICES
    return { reports: [...reports], feeds: [...feeds], asOf: presentAsOf(block) }
  },
)
