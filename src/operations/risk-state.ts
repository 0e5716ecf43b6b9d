import { getRisk } from '../chain/risk-state.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { agentParams } from '../resources/agent.ts'
import { presentRisk, riskState } from '../resources/risk.ts'
import { defineOperation } from './define-operation.ts'

export const getRiskState = defineOperation(
  {
    id: 'getRiskState',
    tool: 'svc_get_risk_state',
    method: 'get',
    path: '/agents/{agentId}/risk-state',
    tag: 'Positions',
    summary: "An agent's risk state",
    description:
      'Allocation, equity, drawdown, PnL of day and life, limits and how much of them is used, and what promotion still needs. Breach flags are advisory.',
    params: agentParams,
    status: 200,
    output: riskState,
    errors: [400, 404, 502, 503],
  },
  async ({ trading }, { agentId }) => {
    const { block, risk } = await getRisk(trading, agentId)
    return presentRisk(agentId, block, risk, await symbolsOf(trading, risk.equity.staleTokens))
  },
)
