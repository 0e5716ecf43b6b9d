import { toShareAmount } from '@agent-trading-service/protocol/price-basis'
import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { formatUnits } from 'viem'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { getAgentNames } from '../chain/agents.ts'
import { findVault } from '../chain/find-vault.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { getVaultFigures, type VaultHolding } from '../chain/vault-stats.ts'
import type { HistoryContext } from '../history/client.ts'
import type { SharePricePoint } from '../history/read-vault-worth.ts'
import { AGENT_STATUSES, nameOf } from '../resources/agent.ts'
import { present } from '../resources/present.ts'
import { ORACLE_DECIMALS } from '../resources/price.ts'
import {
  addressOut,
  amount,
  asOf,
  bps,
  digits,
  lagBlocks,
  presentAsOf,
  unixSeconds,
  usdc,
} from '../resources/primitives.ts'
import { sharePrices, timeSeriesQuery, type worthPoint } from '../resources/time-series.ts'
import { defineOperation } from './define-operation.ts'
import { countedTimeRange } from './equity-history.ts'
import { vaultParams } from './vaults.ts'

const holding = z
  .object({
    symbol: z.string(),
    token: addressOut,
    tokenAmount: amount("Amount the vault holds; the token's base units"),
    shareAmount: amount("Shares that they stand for, by the token's multiplier; in the token's base units"),
    valueUsdc: usdc('Value at the last known price'),
    priceUsd: z.string().meta({ description: 'Last known price; decimal US dollars', example: '118.25' }),
    priceStale: z.boolean(),
  })
  .meta({ id: 'VaultHolding' })

const liquidity = z
  .object({
    depositFeeBps: bps('Fee on a deposit'),
    withdrawFeeBps: bps('Fee on a withdrawal'),
    holdingSeconds: digits('Seconds that new shares neither redeem nor move; up to an eighth more is added'),
    paused: z.boolean().describe('Whether deposits and withdrawals are paused'),
  })
  .meta({ id: 'VaultLiquidity', description: 'The terms of deposits and withdrawals' })

const change = (description: string) => z.int().nullable().describe(`${description}; parts per million`)

const performance = z
  .object({
    return7dPpm: change('Return of a share over 7 days; null if the vault is younger'),
    return30dPpm: change('Over 30 days'),
    return90dPpm: change('Over 90 days'),
    returnPpm: change('Since the first hour with shares'),
    apyPpm: change('The return over 30 days, compounded daily for a year; null if the vault is younger'),
    maxDrawdown90d: z
      .object({
        ppm: z.int(),
        from: unixSeconds('The peak'),
        to: unixSeconds('The bottom'),
      })
      .nullable()
      .describe('Deepest fall of the share price at the ends of the last 90 UTC days; parts per million'),
    contributions: z
      .array(
        z.object({
          agentId: digits('Agent id'),
          name: z.string(),
          pnlUsdc: usdc('Realized and unrealized PnL since registration'),
        }),
      )
      .describe("The 20 agents with the largest gains and losses of the vault's money"),
    contributionsAt: unixSeconds(
      'The start of the last final hour, as of which they are; null before the first',
    ).nullable(),
  })
  .meta({ id: 'VaultPerformance', description: 'How the share price has changed; docs/statistics.md has the formulas' })

const vaultStats = z
  .object({
    vaultId: z.string(),
    contractAddress: addressOut,
    totalAssets: usdc('Idle plus deployed assets'),
    idleAssets: usdc('USDC that is not invested'),
    deployed: z.array(holding).describe('Token holdings'),
    totalShares: amount("Shares in circulation; the share's base units"),
    sharePriceUsdc: usdc('Current value of one whole share'),
    performance,
    ...sharePrices,
    agents: z.object({
      total: z.int(),
      byStatus: z.array(z.object({ status: z.int(), statusName: z.string(), count: z.int() })),
    }),
    allocation: z.object({
      cap: usdc('Sum of the allocation caps of agents with real capital; may exceed the assets'),
      used: usdc('Total cost of the open positions with real capital; null while the index is far behind').nullable(),
    }),
    liquidity: liquidity
      .nullable()
      .describe('The terms of deposits and withdrawals; null if the vault has none of them on chain'),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'VaultStats' })

const presentHolding = (
  { token, amount, multiplier, value, quote }: VaultHolding,
  symbol: string,
): z.input<typeof holding> =>
  present(holding, {
    symbol,
    token,
    tokenAmount: amount,
    shareAmount: toShareAmount(amount, multiplier),
    valueUsdc: value,
    priceUsd: formatUnits(quote.price, ORACLE_DECIMALS),
    priceStale: quote.stale,
  })

const presentStatuses = (byStatus: ReadonlyMap<number, number>) => ({
  total: [...byStatus.values()].reduce((sum, count) => sum + count, 0),
  byStatus: [...byStatus]
    .filter(([, count]) => count > 0)
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => ({ status, statusName: nameOf(AGENT_STATUSES, status), count })),
})

export const getVaultStats = defineOperation(
  {
    id: 'getVaultStats',
    tool: {
      name: 'svc_get_vault_stats',
      set: 'history',
      description:
        'Returns the assets and holdings of a vault, its share price now and over time, and its agents. Example: {"id":"genesis","interval":"1d"}',
    },
    path: '/vaults/{id}/stats',
    tag: 'Vaults',
    summary: 'Get vault statistics',
    description:
      'Returns the assets and holdings of a vault, the share price now and over time with its returns, APY and drawdown, and how many agents trade in it. Holdings are valued at their last known prices. Share prices are at the end of each hour or day (UTC), computed from deposits, withdrawals, fees, trades and posted prices; the last one is at the newest block.',
    params: vaultParams,
    query: timeSeriesQuery,
    output: vaultStats,
  },
  async ({ trading, history }: HistoryContext, { id, ...requested }, call) => {
    const { block: listedAt, registered } = await readVaultsAndTokens(trading)
    const vault = findVault(registered, id)
    const figures = await getVaultFigures(trading, vault.address)
    const range = await countedTimeRange(call, requested, figures.block.timestamp)
    const [agents, { points, opening }, { performance, rowsRead }] = await Promise.all([
      history.vaultAgents(vault.address, figures.block),
      history.sharePrices(trading, vault.address, range, figures.worth, figures.block),
      history.vaultPerformance(trading, vault.address, figures.worth, figures.block),
    ])
    await chargeRowsRead(call, rowsRead)
    const names = await getAgentNames(
      trading,
      performance.contributions.map(({ agentId }) => agentId),
    )
    const symbols = new Map(registered.tokens.map(({ address, symbol }) => [address, symbol]))
    return {
      vaultId: vaultSlug(vault),
      contractAddress: vault.address,
      totalAssets: `${figures.worth.totalAssets}`,
      idleAssets: `${figures.worth.idleAssets}`,
      deployed: figures.holdings
        .filter(({ amount }) => amount > 0n)
        .map(holding => presentHolding(holding, symbols.get(holding.token) ?? holding.token)),
      totalShares: `${figures.worth.totalShares}`,
      sharePriceUsdc: `${figures.worth.sharePrice}`,
      performance: {
        ...performance,
        contributions: performance.contributions.map(entry => ({ ...entry, name: names.get(entry.agentId) ?? '' })),
      },
      sharePrices: points.map(presentWorth),
      opening: opening ? presentWorth(opening) : null,
      agents: presentStatuses(agents.byStatus),
      allocation: {
        cap: `${figures.cap}`,
        used: agents.lagBlocks === 0 ? `${agents.used}` : null,
      },
      liquidity: vault.liquidityTerms ? present(liquidity, vault.liquidityTerms) : null,
      asOf: presentAsOf(figures.block, listedAt, agents.asOf),
      lagBlocks: agents.lagBlocks,
    }
  },
)

// There may be 1,000 points, so they are written out: `present` costs three times as much.
const presentWorth = (point: SharePricePoint): z.input<typeof worthPoint> => ({
  timestamp: `${point.timestamp}`,
  blockNumber: `${point.blockNumber}`,
  sharePriceUsdc: `${point.sharePrice}`,
  totalAssets: `${point.totalAssets}`,
  idleAssets: `${point.idleAssets}`,
  totalShares: `${point.totalShares}`,
})
