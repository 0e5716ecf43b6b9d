import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Address, pad } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import type { SnapshotReader } from './read-index-to-head.ts'

/** The events that name an agent's new owner, in the third topic. */
const OWNER_EVENTS = [
  eventTopic(agentRegistryAbi, 'AgentRegistered'),
  eventTopic(agentRegistryAbi, 'AgentOwnershipTransferred'),
]

const AGENTS_OF_OWNER = 'SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ? AND until IS NULL'

/**
 * Reads the ids of the agents that an owner may have at `asOf`, ascending: those it had at the cursor and those it
 * received since. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readAgentIdsOfOwner(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: Chain },
  owner: Address,
  head: Promise<Block>,
): Promise<{ ids: bigint[]; asOf: Block; lagBlocks: number }> {
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [db.prepare(AGENTS_OF_OWNER).bind(owner)],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [OWNER_EVENTS, null, null, pad(owner)] },
  })
  const indexed = (results[0]?.results ?? []) as { agent_id: number }[]
  const ids = new Set([
    ...indexed.map(({ agent_id }) => BigInt(agent_id)),
    ...logs.map(({ topics }) => BigInt(topics[1] ?? 0)),
  ])
  return { ids: [...ids].sort((a, b) => (a < b ? -1 : 1)), asOf, lagBlocks }
}
