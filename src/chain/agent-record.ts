import type { Address } from 'viem'

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
