import { formatUnits } from 'viem'
import { z } from 'zod'
import type { LiquidityTerms } from '../chain/read-vaults-and-tokens.ts'
import type { VaultHolding } from '../chain/vault-stats.ts'
import { AGENT_STATUSES, nameOf } from './agent.ts'
import { ORACLE_DECIMALS } from './price.ts'
import { addressOut, amount, asOf, bps, digits, lagBlocks, usdc } from './primitives.ts'
import { sharePrices } from './time-series.ts'

const holding = z
  .object({
    symbol: z.string(),
    token: addressOut,
    tokenAmount: amount("Amount the vault holds; the token's base units"),
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
    paused: z.boolean().meta({ description: 'Whether deposits and withdrawals are paused' }),
  })
  .meta({ id: 'VaultLiquidity', description: 'The terms of deposits and withdrawals' })

export const vaultStats = z
  .object({
    vaultId: z.string(),
    contractAddress: addressOut,
    totalAssets: usdc('Idle plus deployed assets'),
    idleAssets: usdc('USDC that is not invested'),
    deployed: z.array(holding).meta({ description: 'Token holdings' }),
    totalShares: amount("Shares in circulation; the share's base units"),
    sharePriceUsdc: usdc('Current value of one whole share'),
    ...sharePrices,
    agents: z.object({
      total: z.int(),
      byStatus: z.array(z.object({ status: z.int(), statusName: z.string(), count: z.int() })),
    }),
    allocation: z.object({
      cap: usdc("Sum of the agents' allocation caps; may exceed the assets"),
      used: usdc(
        'Total cost of all open positions; null while the index is far behind, or if there are too many for one read',
      ).nullable(),
    }),
    liquidity: liquidity
      .nullable()
      .meta({ description: 'The terms of deposits and withdrawals; null if the vault has none of them on chain' }),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'VaultStats' })

export const presentLiquidity = (terms: LiquidityTerms): z.input<typeof liquidity> => ({
  depositFeeBps: Number(terms.depositFeeBps),
  withdrawFeeBps: Number(terms.withdrawFeeBps),
  holdingSeconds: `${terms.holdingSeconds}`,
  paused: terms.paused,
})

export const presentHolding = (
  { token, amount, value, quote }: VaultHolding,
  symbol: string,
): z.input<typeof holding> => ({
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
