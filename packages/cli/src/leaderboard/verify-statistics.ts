import { agentStatistics, totalsOf } from '@agent-trading-service/protocol/agent-statistics'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import type { Period } from '@agent-trading-service/protocol/leaderboard-period'
import { usdcValue } from '@agent-trading-service/protocol/oracle-price'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type LoggedHistory, readLoggedHistory, type VerifiedDeployment } from './logged-history.ts'
import { modeOf, scoreOf } from './verify-leaderboard.ts'

// Recomputes an agent's statistics from nothing but the logs of a chain (and the decimals of its tokens), and compares
// them with served ones.

/** What `GET /agents/{agentId}/stats` returns, as far as it is compared. */
export type ServedStatistics = Record<string, unknown> & {
  agentId: string
  period: Period
  periodStart: string
  capital: 'real' | 'simulated'
  asOf: { blockNumber: string }
}

/**
 * Compares served statistics with the logs. Returns how many figures were compared, and one sentence per difference.
 */
export async function verifyStatistics(
  deployment: VerifiedDeployment,
  served: ServedStatistics,
): Promise<{ figures: number; differences: string[] }> {
  const { agentId, period, periodStart, capital, asOf } = served
  const block = BigInt(asOf.blockNumber)
  const start = Number(periodStart)
  const history = await readLoggedHistory(deployment, block)
  const mode = capital === 'real' ? CapitalMode.Real : CapitalMode.Simulated
  const trades = valuedTrades(history).filter(trade => `${trade.agentId}` === agentId && modeOf(trade) === mode)
  const openings = new Map(
    trades.filter(({ type }) => type === 'PositionOpened').map(trade => [trade.positionId, trade.timestamp]),
  )
  const totals = totalsOf(trades, start, positionId => openings.get(positionId))
  const expected = agentStatistics(totals, await scoreOf(history, agentId, mode, { period, start, block }))
  const found = { ...served, pnlByToken: withoutSymbols(served.pnlByToken) }
  const figures = Object.entries(expected)
  const differences = figures.flatMap(([name, value]) => {
    const given = JSON.stringify((found as Record<string, unknown>)[name])
    return given === JSON.stringify(value) ? [] : [`${name} is ${given}, the logs say ${JSON.stringify(value)}`]
  })
  return { figures: figures.length, differences }
}

const withoutSymbols = (entries: unknown) =>
  Array.isArray(entries) ? entries.map(({ symbol: _, ...entry }: Record<string, unknown>) => entry) : entries

/** Returns all trades with what their tokens were worth at the oracle's last price at the end of their block. */
const valuedTrades = ({ trades, prices, decimals }: LoggedHistory): Trade[] =>
  trades.map(trade => {
    const { token, tokenAmount, blockNumber } = trade
    const price = prices.findLast(fact => fact.token === token && fact.block <= Number(blockNumber))?.price
    const known = decimals.get(token)
    return tokenAmount === undefined || price === undefined || known === undefined
      ? trade
      : { ...trade, oracleValueUsdc: usdcValue(tokenAmount, { price, decimals: known }) }
  })
