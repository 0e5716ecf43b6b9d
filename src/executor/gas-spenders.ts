import type { AgentRecord } from '../chain/agents.ts'
import type { Block } from '../chain/configured-chain.ts'
import { nowAt } from '../clock.ts'
import type { GasSpender } from './relay-types.ts'

/** Agents younger than this share one gas budget: they cost little. */
const NEW_AGENT_SECONDS = 86_400n

/** An agent at a block. */
type Subject = { agent: Pick<AgentRecord, 'owner' | 'createdAt'>; block: Block }

/** Returns the budgets that an agent's intents and its owner's messages use. */
export const spendersOfAgent = (agentId: bigint, { agent, block }: Subject): GasSpender[] => [
  `agent:${agentId}`,
  `owner:${agent.owner}`,
  ...(nowAt(block) - agent.createdAt < NEW_AGENT_SECONDS ? (['newAgents'] as const) : []),
]
