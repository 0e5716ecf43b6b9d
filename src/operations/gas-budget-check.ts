import type { Check } from '@agent-trading-service/protocol/check'
import type { Address } from 'viem'
import type { AgentRecord } from '../chain/agents.ts'
import type { Block } from '../chain/block-type.ts'
import type { Context } from '../context.ts'
import type { GasUse } from '../executor/gas-budgets.ts'

/** Agents younger than this share one gas budget, so that a crowd of them cannot take a lane. */
const NEW_AGENT_SECONDS = 86_400n

type AgentGasUse = Pick<GasUse, 'kind' | 'closesPosition'> & {
  agentId: bigint
  agent: Pick<AgentRecord, 'owner' | 'createdAt'>
  block: Block
}

/** Returns the group of an agent's intents and the accounts whose gas budgets they use. */
export const gasUseOfAgent = ({ agentId, agent, block }: Omit<AgentGasUse, 'kind'>) =>
  ({
    group: `agent:${agentId}`,
    spenders: [`agent:${agentId}`, `owner:${agent.owner}`, ...newAgentsBudget({ agent, block })],
  }) satisfies Pick<GasUse, 'group' | 'spenders'>

/** Returns the accounts whose gas budgets a message of an owner about an agent uses. */
export const gasSpendersOfOwner = (owner: Address, subject: Pick<AgentGasUse, 'agent' | 'block'>) => [
  `owner:${owner}` as const,
  ...newAgentsBudget(subject),
]

const newAgentsBudget = ({ agent, block }: Pick<AgentGasUse, 'agent' | 'block'>): readonly 'newAgents'[] =>
  block.timestamp - agent.createdAt < NEW_AGENT_SECONDS ? ['newAgents'] : []

/**
 * Returns the check of a quote that tells whether the gas budgets have room for the intent; `limit` and `used` are those of
 * the tightest budget, in gas. Empty if the deployment relays nothing or its lane is unreachable.
 */
export async function gasBudgetChecks(
  context: Context,
  { kind, closesPosition, ...use }: AgentGasUse,
): Promise<Check[]> {
  if (context.config.executorKeys.length === 0) return []
  const status = await context.executor
    .gasBudgets({ ...gasUseOfAgent(use), kind, ...(closesPosition !== undefined && { closesPosition }) })
    .catch(() => undefined)
  if (status === undefined) return []
  const windows = status.quotas.flatMap(({ budget, minute, day }) => (budget === 'exitReserve' ? [] : [minute, day]))
  const tightest = windows.reduce((least, window) => (window.leftGas < least.leftGas ? window : least))
  const { limitGas, leftGas } = status.shortage ?? tightest
  return [
    {
      rule: 'gasBudget',
      code: 'GAS_BUDGET_EXHAUSTED',
      pass: status.shortage === undefined,
      limit: BigInt(limitGas),
      used: BigInt(limitGas - leftGas),
    },
  ]
}
