import { agentStatistics } from '@agent-trading-service/protocol/agent-statistics'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { PERIODS, periodEnd } from '@agent-trading-service/protocol/leaderboard-period'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import type { HistoryContext } from '../history/client.ts'
import { addressOut, asOf, bps, digits, lagBlocks, presentAsOf, unixSeconds, usdc } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { CAPITALS, capitalModeOf } from './leaderboard.ts'

const ppm = (description: string) => z.int().describe(`${description}; parts per million`)
const milli = (description: string) => z.int().nullable().describe(`${description}; thousandths`)

const extreme = z
  .object({ positionId: digits('Position id'), pnlUsdc: usdc('PnL of the whole position') })
  .meta({ id: 'ClosedExtreme', description: 'Of equal positions, the oldest' })

const agentStats = z
  .object({
    agentId: digits('Agent id'),
    period: z.enum(PERIODS),
    periodStart: unixSeconds('First second of the period; 0 for all'),
    periodEnd: unixSeconds('First second after the period; null for all').nullable(),
    capital: z.enum(CAPITALS),
    pnlUsdc: usdc('Change of realized and unrealized PnL in the period'),
    realizedPnlUsdc: usdc('Sum over the sales: proceeds less the released cost basis'),
    returnPpm: ppm('Sum of the hourly returns'),
    trades: z.int().describe('Purchases and sales'),
    closedPositions: z.int().describe('Positions whose last tokens were sold in the period'),
    wins: z.int().describe('Of those, the ones with a profit'),
    losses: z.int().describe('Of those, the ones with a loss'),
    winRateBps: bps('wins / closedPositions; null without one').nullable(),
    grossProfitUsdc: usdc('Sum of the profits of closed positions'),
    grossLossUsdc: usdc('Sum of the losses of closed positions; not negative'),
    profitFactorMilli: milli('grossProfitUsdc / grossLossUsdc; null without a loss'),
    averageHoldingSeconds: z.int().nullable().describe('Seconds from the opening to the close of closed positions'),
    longestHolding: z.object({ positionId: digits('Position id'), seconds: z.int() }).nullable(),
    best: extreme.nullable(),
    worst: extreme.nullable(),
    maxDrawdown: z
      .object({
        ppm: ppm('Deepest fall of 1 + the sum of the returns from its peak'),
        from: unixSeconds('The peak'),
        to: unixSeconds('The bottom'),
      })
      .nullable(),
    sharpeMilli: milli('Mean / standard deviation of the hourly returns × √8760; null with fewer than 12 hours'),
    sortinoMilli: milli('Mean / downside deviation of the hourly returns × √8760; null without a loss in 12 hours'),
    exposurePpm: ppm('Mean of the value of the tokens at the ends of the hours / allocation cap'),
    hours: z.int().describe('From the first to the last sample'),
    gapHours: z.int().describe('Of those, the ones with a price older than an hour'),
    executionCost: z
      .object({
        costUsdc: usdc(
          "What was paid above the oracle's value, or received below it; negative is better than the oracle",
        ),
        oracleValueUsdc: usdc("The oracle's value of what was traded, at the price at the end of each block"),
        costBps: bps('costUsdc / oracleValueUsdc; null without a value').nullable(),
      })
      .meta({ id: 'ExecutionCost' }),
    pnlByDay: z
      .array(z.object({ day: unixSeconds('First second of the UTC day'), realizedPnlUsdc: usdc('Realized that day') }))
      .describe('Days with sales, oldest first; the newest 366'),
    pnlByToken: z.array(
      z.object({
        symbol: z.string(),
        token: addressOut,
        trades: z.int(),
        realizedPnlUsdc: usdc('Realized with the token'),
        costUsdc: usdc('Execution cost'),
        costBps: bps("Execution cost as a part of the oracle's value").nullable(),
      }),
    ),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'AgentStats' })

export const getAgentStats = defineOperation(
  {
    id: 'getAgentStats',
    tool: {
      name: 'svc_get_agent_stats',
      set: 'leaderboard',
      description:
        'Returns win rate, profit factor, holding times, drawdown, Sharpe, Sortino, exposure and execution cost of an agent in the present day, week, month or all time. Example: {"agentId":"1","period":"all"}',
    },
    path: '/agents/{agentId}/stats',
    tag: 'Positions',
    summary: 'Get trading statistics',
    description:
      "Returns what an agent's trades in the present UTC day, week (from Monday), month, or in all time amount to, for one kind of capital. Every figure follows from the logs of the chain up to the block of `asOf`, in integers rounded towards zero: returns, drawdown and ratios as on the leaderboard, positions and costs from the trades. docs/statistics.md has the formulas; `ats verify stats` recomputes them.",
    query: z.object({
      period: z.enum(PERIODS).default('all').meta({
        description: 'UTC day, week from Monday, calendar month, or all time',
        example: 'all',
      }),
      capital: z.enum(CAPITALS).optional().describe("Default: that of the agent's newest trade"),
    }),
    output: agentStats,
  },
  async ({ trading, history }: HistoryContext, { agentId, period, capital }, call) => {
    const { totals, score, start, capitalMode, rowsRead, asOf, lagBlocks } = await history.agentTotals({
      agentId,
      period,
      capitalMode: capitalModeOf(capital),
    })
    await chargeRowsRead(call, rowsRead)
    const { pnlByToken, ...statistics } = agentStatistics(totals, score)
    const symbolOf = await symbolsOf(trading, pnlByToken)
    return {
      agentId: `${agentId}`,
      period,
      periodStart: `${start}`,
      periodEnd: `${periodEnd(period, start) ?? ''}` || null,
      capital: capitalMode === CapitalMode.Real ? 'real' : 'simulated',
      ...statistics,
      pnlByToken: pnlByToken.map(entry => ({ symbol: symbolOf(entry.token), ...entry })),
      asOf: presentAsOf(asOf),
      lagBlocks,
    } as const
  },
)
