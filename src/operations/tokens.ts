import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import type { HistoryContext } from '../history/client.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentToken, tokenCatalog } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'
import { vaultIdsOf } from './vaults.ts'

export const listTokens = defineOperation(
  {
    id: 'listTokens',
    tool: {
      name: 'svc_list_tokens',
      description: 'Lists every token with its price in USD and the vaults that allow it.',
    },
    path: '/tokens',
    tag: 'Vaults',
    summary: 'List all tokens',
    description: 'Returns every token of the registry with its state, its price and the vaults that allow it.',
    cache: 'isolate',
    output: tokenCatalog,
    errors: [502],
  },
  async ({ chain, history }: HistoryContext) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const dayBefore = await history.pricesDayBefore(
      registered.tokens.map(({ address }) => address),
      block.timestamp,
    )
    const tokens = registered.tokens.map(token =>
      presentToken(token, vaultIdsOf(registered, token.address), registered.quoteIn(token.address), dayBefore),
    )
    return {
      chainId: chain.id,
      tokenRegistry: chain.contracts.TokenRegistry,
      priceOracle: chain.contracts.PriceOracle,
      tokens,
      total: tokens.length,
      asOf: presentAsOf(block),
    }
  },
)
