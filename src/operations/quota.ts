import { z } from 'zod'
import { getAgent } from '../chain/agents.ts'
import type { Context } from '../context.ts'
import type { GasQuota as ExecutorGasQuota } from '../executor/gas-budgets.ts'
import { requestingAgent } from '../executor/requester.ts'
import { addressOut, digits } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const quotaWindow = z.object({
  limitGas: z.int().describe('The most gas the budget holds'),
  leftGas: z
    .int()
    .describe('What the agent may use of it now; it refills evenly over the window, and is divided fairly'),
})

const gasQuota = z
  .object({
    agentId: digits('Agent id'),
    executor: addressOut.describe('The account that pays for the gas of the agent'),
    budgets: z.array(
      z.object({
        budget: z
          .enum(['agent', 'newAgents', 'lane', 'exitReserve', 'reserves'])
          .describe(
            'Whose gas counts: the agent, agents that are not a day old, everybody on the executor. exitReserve is for reductions once another budget is exhausted; reserves is what all exit reserves use together',
          ),
        minute: quotaWindow,
        hour: quotaWindow.optional().describe('Of the budgets agent and exitReserve'),
        day: quotaWindow.optional().describe('Of the budgets that agents share'),
      }),
    ),
  })
  .meta({ id: 'GasQuota' })

export const getGasQuota = defineOperation(
  {
    id: 'getGasQuota',
    tool: {
      name: 'svc_get_gas_quota',
      set: 'owner',
      description:
        'How much gas the service still pays for an agent, per minute and hour; use it after GAS_BUDGET_EXHAUSTED. Example: {"agentId":"1"}',
    },
    path: '/agents/{agentId}/quota',
    tag: 'Trading',
    summary: 'Get the gas quota of an agent',
    description:
      'The service pays for the gas of intents, within budgets per minute and per hour for an agent, and per day for all agents. An intent that finds no room in one of them is refused with GAS_BUDGET_EXHAUSTED and Retry-After. Returns what is left of each, after everything that is in flight.',
    output: gasQuota,
  },
  async ({ trading, executor }: Pick<Context, 'executor' | 'trading'>, { agentId }) => {
    const { agent, block } = await getAgent(trading, agentId)
    const by = { as: 'signer', agent: requestingAgent(agentId, agent, block), account: agent.signer } as const
    const { quotas } = await executor.gasBudgets({ kind: 'open', by })
    return { agentId: `${agentId}`, executor: executor.addressOf(by), budgets: presentGasQuotas(quotas) }
  },
)

/** Presents what is left of the gas budgets of an agent. */
const presentGasQuotas = (quotas: readonly ExecutorGasQuota[]) => quotas as z.input<typeof gasQuota>['budgets']
