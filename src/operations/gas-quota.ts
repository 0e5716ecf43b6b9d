import { getAgent } from '../chain/agents.ts'
import { agentParams } from '../resources/agent.ts'
import { gasQuota, presentGasQuotas } from '../resources/gas-quota.ts'
import { defineOperation } from './define-operation.ts'
import { gasUseOfAgent } from './gas-budget-check.ts'

export const getGasQuota = defineOperation(
  {
    id: 'getGasQuota',
    tool: {
      name: 'svc_get_gas_quota',
      set: 'owner',
      description:
        'How much gas the service still pays for an agent, per minute and day; use it after GAS_BUDGET_EXHAUSTED. Example: {"agentId":"1"}',
    },
    method: 'get',
    path: '/agents/{agentId}/quota',
    tag: 'Trading',
    summary: 'Get the gas quota of an agent',
    description:
      'The service pays for the gas of intents, within budgets per minute and per day. An intent that finds no room in one of them is refused with GAS_BUDGET_EXHAUSTED and Retry-After. Returns what is left of each, after everything that is in flight.',
    params: agentParams,
    cache: 'none',
    status: 200,
    output: gasQuota,
    errors: [404, 502, 503],
  },
  async ({ trading, executor }, { agentId }) => {
    const { agent, block } = await getAgent(trading, agentId)
    const use = gasUseOfAgent({ agentId, agent, block })
    const { quotas } = await executor.gasBudgets({ ...use, kind: 'open' })
    return { agentId: `${agentId}`, executor: executor.addressOf(use.group), budgets: presentGasQuotas(quotas) }
  },
)
