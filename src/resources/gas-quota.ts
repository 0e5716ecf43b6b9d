import { z } from 'zod'
import type { GasQuota as ExecutorGasQuota } from '../executor/gas-budgets.ts'
import { addressOut, digits } from './primitives.ts'

const quotaWindow = z.object({
  limitGas: z.int().meta({ description: 'The most gas the budget holds' }),
  leftGas: z.int().meta({ description: 'What is left of it; it refills evenly over the window' }),
})

export const gasQuota = z
  .object({
    agentId: digits('Agent id'),
    executor: addressOut.meta({ description: 'The account that pays for the gas of the agent' }),
    budgets: z.array(
      z.object({
        budget: z.enum(['agent', 'owner', 'newAgents', 'lane', 'exitReserve']).meta({
          description:
            'Whose gas counts: the agent, its owner with all agents, agents that are not a day old, everybody on the executor. exitReserve is for reductions once another budget is exhausted',
        }),
        minute: quotaWindow,
        day: quotaWindow,
      }),
    ),
  })
  .meta({ id: 'GasQuota' })

/** Presents what is left of the gas budgets of an agent. */
export const presentGasQuotas = (quotas: readonly ExecutorGasQuota[]) => quotas as z.input<typeof gasQuota>['budgets']
