import { readMarket } from '../chain/listings.ts'
import { presentToken, tokenCatalog } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { vaultIdsOf } from './vaults.ts'

export const listTokens = defineOperation(
  {
    id: 'listTokens',
    tool: 'svc_list_tokens',
    method: 'get',
    path: '/tokens',
    tag: 'Vaults',
    summary: 'List all tokens',
    description: 'Every token of the registry with its state, its price and the vaults that allow it.',
    remembered: true,
    status: 200,
    output: tokenCatalog,
    errors: [400, 500, 502],
  },
  async ({ chain }) => {
    const { block, market } = await readMarket(chain)
    const tokens = market.tokens.map(token =>
      presentToken(token, vaultIdsOf(market, token.address), market.quoteIn(token.address)),
    )
    return {
      chainId: chain.id,
      tokenRegistry: chain.contracts.TokenRegistry,
      priceOracle: chain.contracts.PriceOracle,
      tokens,
      total: tokens.length,
      asOf: presentBlock(block),
    }
  },
)
