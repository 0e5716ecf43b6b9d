import type { Address } from 'viem'
import { refuse } from '../errors/refuse.ts'

/** An agent as the registry returns it. `status` is an `AgentStatus`; `createdAt` is Unix seconds. */
export type AgentRecord = {
  owner: Address
  signer: Address
  payoutRecipient: Address
  vault: Address
  track: number
  status: number
  name: string
  metadataURI: string
  createdAt: bigint
  hasERC8004Identity: boolean
  erc8004AgentId: bigint
}

/** Returns the record unless it is empty: the registry returns empty records of agents that do not exist. */
export const existing = (record: AgentRecord | undefined): AgentRecord | undefined =>
  record === undefined || record.createdAt === 0n ? undefined : record

/** Returns the agent that was read. Throws AGENT_NOT_FOUND if there is none. */
export function foundAgent<Agent>(agent: Agent | undefined, agentId: bigint): Agent {
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  return agent
}
