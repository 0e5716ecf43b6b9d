import { type Address, pad, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Block, Chain } from '../chain/chain.ts'
import type { Viewer } from './consistent-read.ts'

const eventOf = (name: 'AgentRegistered' | 'AgentOwnershipTransferred') =>
  toEventSelector(agentRegistryAbi.find(item => item.type === 'event' && item.name === name) as never)
// Both events carry in their third topic whose the agent is from then on.
const OWNER_EVENTS = [eventOf('AgentRegistered'), eventOf('AgentOwnershipTransferred')]

/**
 * Ids of the agents that an owner may hold at `asOf`: those that it held at the cursor, and those that it got since.
 * Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readOwned(
  { viewer, chain }: { viewer: Viewer; chain: Chain },
  owner: Address,
  head: Promise<Block>,
): Promise<{ ids: bigint[]; asOf: Block; lagBlocks: number }> {
  const { results, logs, asOf, lagBlocks } = await viewer.view({
    queries: db => [
      db.prepare('SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ? AND until IS NULL').bind(owner),
    ],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [OWNER_EVENTS, null, null, pad(owner)] },
  })
  const held = (results[0]?.results ?? []) as { agent_id: number }[]
  const ids = new Set([
    ...held.map(({ agent_id }) => BigInt(agent_id)),
    ...logs.map(({ topics }) => BigInt(topics[1] ?? 0)),
  ])
  return { ids: [...ids].sort((a, b) => (a < b ? -1 : 1)), asOf, lagBlocks }
}
