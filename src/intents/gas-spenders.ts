import type { Address } from 'viem'
import type { AgentRecord } from '../chain/agents.ts'
import type { Block } from '../chain/configured-chain.ts'
import type { GasSpender } from '../executor/relay-types.ts'

/** Agents younger than this share one gas budget, so that a crowd of them cannot take a lane. */
const NEW_AGENT_SECONDS = 86_400n

/** An agent at a block. */
type Subject = { agent: Pick<AgentRecord, 'owner' | 'createdAt'>; block: Block }

/** Returns the accounts whose gas budgets an agent's intents use. */
export const spendersOfAgent = (agentId: bigint, subject: Subject): GasSpender[] => [
  `agent:${agentId}`,
  ...spendersOfOwner(subject.agent.owner, subject),
]

/** Returns the accounts whose gas budgets a message of an owner about an agent uses. */
export const spendersOfOwner = (owner: Address, { agent, block }: Subject): GasSpender[] => [
  `owner:${owner}`,
  ...(block.timestamp - agent.createdAt < NEW_AGENT_SECONDS ? (['newAgents'] as const) : []),
]
