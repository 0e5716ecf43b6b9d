import { catalogVault } from '../catalog/vault-texts.ts'
import type { Block, TradingChain } from '../chain/chain.ts'
import { readMarket, type Vault } from '../chain/listings.ts'
import { getVaultFigures } from '../chain/vault-stats.ts'
import { refuse } from '../errors/catalogue.ts'
import { type History, MOST_ROUNDS } from '../history/client.ts'
import { chartQuery, presentWorth } from '../resources/time-series.ts'
import { presentHolding, presentStatuses, vaultStats } from '../resources/vault-stats.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { toRange } from './time-range.ts'
import { findVault, vaultParams } from './vaults.ts'

export const getVaultStats = defineOperation(
  {
    id: 'getVaultStats',
    tool: 'svc_get_vault_stats',
    method: 'get',
    path: '/vaults/{id}/stats',
    tag: 'Vaults',
    summary: 'Figures of a vault',
    description:
      'What a vault has, where it is, what a share is worth and was worth, and how many agents trade in it. Prices are the last known ones. The share price is sampled every 15 minutes and after each deposit, withdrawal and trade; the last sample of each hour or day is its point.',
    params: vaultParams,
    query: chartQuery,
    status: 200,
    output: vaultStats,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, history }, { id, ...asked }) => {
    const { block, market } = await readMarket(trading)
    const vault = findVault(market, id)
    const range = toRange(asked, block.timestamp)
    const { figures, agents } = await figuresOf(trading, history, vault, block)
    const { points, opening } = await history.worths(vault.address, range, figures.block)
    const symbols = new Map(market.tokens.map(({ address, symbol }) => [address, symbol]))
    const isWhole = agents.lagBlocks === 0
    return {
      vaultId: catalogVault(vault).slug,
      contractAddress: vault.address,
      totalAssets: `${figures.worth.totalAssets}`,
      idleAssets: `${figures.worth.idleAssets}`,
      deployed: figures.holdings
        .filter(({ amount }) => amount > 0n)
        .map(holding => presentHolding(holding, symbols.get(holding.token) ?? holding.token)),
      totalShares: `${figures.worth.totalShares}`,
      sharePriceUsdc: `${figures.worth.sharePrice}`,
      sharePrices: points.map(presentWorth),
      opening: opening ? presentWorth(opening) : null,
      agents: presentStatuses(agents.byStatus),
      allocation: {
        cap: `${figures.cap}`,
        used: figures.used === undefined || !isWhole ? null : `${figures.used}`,
      },
      asOf: presentBlock(figures.block),
      lagBlocks: agents.lagBlocks,
    }
  },
)

/** The figures of a vault with all agents that trade in it: read again while somebody has joined them in between. */
async function figuresOf(trading: TradingChain, history: History, { address }: Vault, block: Block) {
  let agents = await history.vaultAgents(trading, address, block)
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const figures = await getVaultFigures(trading, address, agents.trading)
    const asked = new Set(agents.trading)
    if (figures.block.number > agents.asOf.number) agents = await history.vaultAgents(trading, address, figures.block)
    if (agents.trading.every(id => asked.has(id))) return { figures, agents }
  }
  throw refuse('HISTORY_UNAVAILABLE')
}
