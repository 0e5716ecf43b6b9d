import { row } from './error-row.ts'

/** Promotions that the promotion criteria refuse. Amounts are USDC base units. */
export const promotionErrors = {
  PROMOTION_CRITERIA_NOT_SET: row({
    status: 400,
    sentence: () => 'This deployment has no promotion criteria.',
    remedy: 'Report it to the operator of the deployment.',
  }),
  TOO_FEW_TRADES: row<{ agentId: bigint; trades: bigint; minTrades: bigint }>({
    status: 400,
    sentence: ({ agentId, trades, minTrades }) =>
      `Agent ${agentId} has ${trades} trades; promotion needs ${minTrades}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  EVALUATION_PERIOD_NOT_OVER: row<{ agentId: bigint; endsAt: bigint }>({
    status: 400,
    sentence: ({ agentId, endsAt }) => `The evaluation period of agent ${agentId} ends at ${endsAt} (Unix seconds).`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  SCORE_TOO_LOW: row<{ agentId: bigint; score: bigint; minScore: bigint }>({
    status: 400,
    sentence: ({ agentId, score, minScore }) =>
      `The score of agent ${agentId} is ${score}; promotion needs ${minScore}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DAILY_LOSS_LIMIT_BREACHED: row<{ agentId: bigint; lossUsdc: bigint; maxLossUsdc: bigint }>({
    status: 400,
    sentence: ({ agentId, lossUsdc, maxLossUsdc }) =>
      `The day's realized loss of agent ${agentId} is ${lossUsdc} USDC base units; promotion needs less than ${maxLossUsdc}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  DRAWDOWN_LIMIT_BREACHED: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    status: 400,
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; promotion needs less than ${maxDrawdownBps}.`,
    remedy: 'GET /agents/{agentId}/risk-state shows the promotion criteria.',
  }),
  OPEN_POSITIONS_OF_OTHER_MODE: row<{ agentId: bigint; count: bigint }>({
    status: 400,
    sentence: ({ agentId, count }) => `Agent ${agentId} has ${count} open positions of the other capital mode.`,
    remedy: 'Close them first.',
  }),
}
