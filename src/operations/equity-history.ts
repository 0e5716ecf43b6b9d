import type { z } from 'zod'
import type { EquityPoint } from '../history/tables/equity-samples.ts'
import { agentParams } from '../resources/agent.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { equityHistory, type equityPoint, timeSeriesQuery } from '../resources/time-series.ts'
import { defineOperation } from './define-operation.ts'
import { parseTimeRange } from './time-range.ts'

export const getEquityHistory = defineOperation(
  {
    id: 'getEquityHistory',
    tool: {
      name: 'svc_get_equity_history',
      set: 'history',
      description: 'Returns equity, PnL and drawdown of an agent over time. Example: {"agentId":"1","interval":"1d"}',
    },
    method: 'get',
    path: '/agents/{agentId}/equity-history',
    tag: 'Positions',
    summary: 'Get equity over time',
    description:
      'Returns equity, PnL and drawdown, sampled from the risk state after each trade and every 15 minutes while a position is open. A point is the last sample of its hour or day; gaps are not filled. There are no samples from before the service started sampling. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the points as CSV.',
    params: agentParams,
    query: timeSeriesQuery,
    csv: 'points',
    cache: 'none',
    status: 200,
    output: equityHistory,
    errors: [404, 502, 503],
  },
  async ({ trading: _, history }, { agentId, ...requested }) => {
    const { points, opening, asOf, lagBlocks } = await history.equity(agentId, now => parseTimeRange(requested, now))
    return {
      agentId: `${agentId}`,
      points: points.map(presentEquity),
      opening: opening ? presentEquity(opening) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

const presentEquity = (point: EquityPoint): z.input<typeof equityPoint> => ({
  timestamp: `${point.timestamp}`,
  blockNumber: `${point.blockNumber}`,
  equityUsdc: `${point.equity}`,
  realizedPnlUsdc: `${point.realized}`,
  unrealizedPnlUsdc: `${point.unrealized}`,
  drawdownBps: point.drawdownBps,
  openCount: point.openCount,
  priceStale: point.isStale,
})
