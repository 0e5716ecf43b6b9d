import { formatUnits } from 'viem'
import { z } from 'zod'
import type { Holding } from '../chain/vault-stats.ts'
import { AGENT_STATUSES, nameOf } from './agent.ts'
import { addressOut, amount, asOf, lagBlocks, usdc } from './primitives.ts'
import { sharePrices } from './time-series.ts'
import { ORACLE_DECIMALS } from './token.ts'

const holding = z
  .object({
    symbol: z.string(),
    token: addressOut,
    tokenAmount: amount("What the vault holds of it; the token's base units"),
    valueUsdc: usdc('At the last known price'),
    priceUsd: z.string().meta({ description: 'Last known price; decimal US dollars', example: '118.25' }),
    priceStale: z.boolean(),
  })
  .meta({ id: 'VaultHolding' })

export const vaultStats = z
  .object({
    vaultId: z.string(),
    contractAddress: addressOut,
    totalAssets: usdc('Idle assets and what is deployed'),
    idleAssets: usdc('USDC that is not invested'),
    deployed: z.array(holding).meta({ description: 'What it holds beside USDC' }),
    totalShares: amount("All shares; the share's base units"),
    sharePriceUsdc: usdc('What one whole share is worth now'),
    ...sharePrices,
    agents: z.object({
      total: z.int(),
      byStatus: z.array(z.object({ status: z.int(), statusName: z.string(), count: z.int() })),
    }),
    allocation: z.object({
      cap: usdc("Sum of the agents' caps; may exceed the assets"),
      used: usdc(
        'Cost of all open positions; null while the history is far behind, or beyond what one read adds up',
      ).nullable(),
    }),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'VaultStats' })

export const presentHolding = ({ token, amount, value, quote }: Holding, symbol: string): z.input<typeof holding> => ({
  symbol,
  token,
  tokenAmount: `${amount}`,
  valueUsdc: `${value}`,
  priceUsd: formatUnits(quote.price, ORACLE_DECIMALS),
  priceStale: quote.stale,
})

export const presentStatuses = (byStatus: ReadonlyMap<number, number>) => ({
  total: [...byStatus.values()].reduce((sum, count) => sum + count, 0),
  byStatus: [...byStatus]
    .filter(([, count]) => count > 0)
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => ({ status, statusName: nameOf(AGENT_STATUSES, status), count })),
})
