import { getRisk, heldSources } from '../chain/risk-state.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { presentRisk, riskState } from '../resources/risk-state.ts'
import { defineOperation } from './define-operation.ts'

export const getRiskState = defineOperation(
  {
    id: 'getRiskState',
    tool: {
      name: 'svc_get_risk_state',
      card: 'agent',
      description:
        'Returns allocation, equity, drawdown, PnL and limits, and what promotion requires. Example: {"agentId":"1"}',
    },
    resource: {
      uri: 'svc://agents/{agentId}/risk-state',
      name: 'risk-state',
      title: 'Risk state of an agent',
      description:
        'The output of svc_get_risk_state. Subscribe to be notified when the agent has traded, an exit has fired, or a limit is breached or no longer breached.',
    },
    path: '/agents/{agentId}/risk-state',
    tag: 'Positions',
    summary: 'Get the risk state of an agent',
    description:
      'Returns allocation, equity, drawdown, daily and lifetime PnL, the limits and how much of them is used, and what promotion still requires. Breach flags are advisory.',
    cache: 'etag',
    output: riskState,
  },
  async ({ trading }, { agentId }) => {
    const { block, risk } = await getRisk(trading, agentId)
    const sources = await heldSources(trading, agentId, risk)
    const symbolOf = await symbolsOf(trading, [...risk.equity.staleTokens, ...sources.keys()])
    const priceSources = Object.fromEntries([...sources].map(([token, source]) => [symbolOf(token), source]))
    return { ...presentRisk(agentId, block, risk, symbolOf), priceSources }
  },
)
