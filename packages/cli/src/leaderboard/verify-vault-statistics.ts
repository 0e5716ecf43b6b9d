import { isExecution } from '@agent-trading-service/protocol/agent-book'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import { HOUR_SECONDS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { foldRecord, hourOf } from '@agent-trading-service/protocol/track-record'
import { EMPTY_VAULT, vaultChangesOf, worthOf } from '@agent-trading-service/protocol/vault-book'
import { performanceOf, performanceTimes } from '@agent-trading-service/protocol/vault-performance'
import type { Address } from 'viem'
import { type LoggedHistory, readLoggedHistory, type VerifiedDeployment } from './logged-history.ts'
import { marketOf, modeOf } from './verify-leaderboard.ts'

// Recomputes a vault's statistics from nothing but the logs of a chain (and the decimals of its tokens), and compares
// them with served ones.

type ServedWorth = { timestamp: string; sharePriceUsdc: string; totalAssets: string; totalShares: string }
/** What `GET /vaults/{id}/stats` returns, as far as it is compared. */
export type ServedVaultStatistics = {
  contractAddress: Address
  totalAssets: string
  totalShares: string
  sharePriceUsdc: string
  performance: Record<string, unknown> & {
    contributions: { agentId: string; pnlUsdc: string }[]
    contributionsAt: string | null
  }
  sharePrices: ServedWorth[]
  opening: ServedWorth | null
  asOf: { blockNumber: string; blockTimestamp: string }
}

/**
 * Compares a vault's served statistics with the logs. Returns how many figures were compared, and one sentence per
 * difference.
 */
export async function verifyVaultStatistics(
  deployment: VerifiedDeployment,
  served: ServedVaultStatistics,
): Promise<{ figures: number; differences: string[] }> {
  const vault = served.contractAddress
  const history = await readLoggedHistory(deployment, BigInt(served.asOf.blockNumber), vault)
  const worthAt = createWorth(history, vault)
  const now = Number(served.asOf.blockTimestamp)
  const newest = worthAt(now)
  const { contributions, contributionsAt, ...performance } = served.performance
  const times = performanceTimes(now, worthAt.firstHour)
  const figures: Figure[] = [
    ['totalAssets', served.totalAssets, `${newest.totalAssets}`],
    ['totalShares', served.totalShares, `${newest.totalShares}`],
    ['sharePriceUsdc', served.sharePriceUsdc, `${newest.sharePrice}`],
    ...[...served.sharePrices, served.opening].flatMap((point): Figure[] => {
      if (point === null) return []
      const { sharePrice, totalAssets, totalShares } = worthAt(Number(point.timestamp))
      return [
        [`sharePriceUsdc at ${point.timestamp}`, point.sharePriceUsdc, `${sharePrice}`],
        [`totalAssets at ${point.timestamp}`, point.totalAssets, `${totalAssets}`],
        [`totalShares at ${point.timestamp}`, point.totalShares, `${totalShares}`],
      ]
    }),
    ...Object.entries(performanceOf(times.map(worthAt), newest)).map(
      ([name, value]): Figure => [name, performance[name], value],
    ),
    ...contributions.map(({ agentId, pnlUsdc }): Figure => {
      const pnl = contributionOf(history, agentId, Number(contributionsAt) / HOUR_SECONDS)
      return [`pnlUsdc of agent ${agentId}`, pnlUsdc, `${pnl}`]
    }),
  ]
  const differences = figures.flatMap(([name, given, expected]) =>
    JSON.stringify(given) === JSON.stringify(expected)
      ? []
      : [`${name} is ${JSON.stringify(given)}, the logs say ${JSON.stringify(expected)}`],
  )
  return { figures: figures.length, differences }
}

type Figure = [name: string, served: unknown, expected: unknown]

/**
 * Returns the worth of a vault at a time in Unix seconds, from its events, the trades with its money and posted prices.
 */
function createWorth({ trades, vaultLogs, prices, decimals }: LoggedHistory, vault: Address) {
  const changes = vaultChangesOf(trades, vaultLogs).filter(change => change.vault === vault)
  const [first] = changes
  const worthAt = (time: number) => {
    const book = changes
      .filter(({ timestamp }) => timestamp <= time)
      .reduce((before, { apply }) => apply(before), EMPTY_VAULT)
    const worth = worthOf(book, {
      priceOf: token =>
        lastAtOrBefore(
          prices.filter(price => price.token === token),
          time,
        )?.price,
      decimalsOf: token => decimals.get(token) ?? 18,
    })
    return { timestamp: BigInt(time), ...worth }
  }
  return Object.assign(worthAt, { firstHour: first && hourOf(first.timestamp) })
}

/** Returns what an agent has won or lost with real capital up to the start of an hour, in USDC base units. */
function contributionOf(history: LoggedHistory, agentId: string, hour: number): bigint {
  const executions = history.trades.filter(
    trade => `${trade.agentId}` === agentId && isExecution(trade) && modeOf(trade) === CapitalMode.Real,
  )
  return foldRecord(undefined, executions, hour, marketOf(history, agentId))?.record.pnl ?? 0n
}
