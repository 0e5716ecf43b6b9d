import { agentParams } from '../resources/agent.ts'
import { chartQuery, equityHistory, presentEquity } from '../resources/time-series.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { toRange } from './time-range.ts'

export const getEquityHistory = defineOperation(
  {
    id: 'getEquityHistory',
    tool: 'svc_get_equity_history',
    method: 'get',
    path: '/agents/{agentId}/equity-history',
    tag: 'Positions',
    summary: 'Equity over time',
    description:
      'Equity, PnL and drawdown as the risk state had them, sampled after each trade and, while a position is open, every 15 minutes. The last sample of each hour or day is its point; nothing is filled in. What was before the service began to look is not known. Over HTTP `format=csv` (or `Accept: text/csv`) answers the points as CSV.',
    params: agentParams,
    query: chartQuery,
    csv: 'points',
    status: 200,
    output: equityHistory,
    errors: [400, 404, 502, 503],
  },
  async ({ trading: _, history }, { agentId, ...asked }) => {
    const { points, opening, asOf, lagBlocks } = await history.equity(agentId, now => toRange(asked, now))
    return {
      agentId: `${agentId}`,
      points: points.map(presentEquity),
      opening: opening ? presentEquity(opening) : null,
      asOf: presentBlock(asOf),
      lagBlocks,
    }
  },
)
