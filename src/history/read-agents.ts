import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Address, pad } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import type { SnapshotFacts, SnapshotReader } from './read-index-to-head.ts'
import { selectAgentsByName } from './tables/agent-names.ts'

/** Selects agents by their current vault, track and status. */
type AgentFilter = { vault?: Address | undefined; track?: number | undefined; status?: number | undefined }

/** Selects a page of agents, newest first. `below` is an exclusive upper bound of the id. */
export type AgentQuery = AgentFilter & { limit: number; below?: bigint | undefined }

/** Ids of agents that may belong to a page, newest first. If there may be more below them, `end` is the last id. */
type AgentCandidates = { ids: bigint[]; end: bigint | undefined; asOf: Block; lagBlocks: number }

const REGISTERED = eventTopic(agentRegistryAbi, 'AgentRegistered')

/** The events that can change which agents a filter selects. */
const FILTERED_EVENTS = [
  REGISTERED,
  eventTopic(agentRegistryAbi, 'AgentStatusChanged'),
  eventTopic(agentRegistryAbi, 'AgentPromoted'),
]

/**
 * Reads the ids of the agents that may belong to a page at `asOf`: a page of the index plus one agent, and the agents
 * that changed since. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readAgentCandidates(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: Chain },
  query: AgentQuery,
  head: Promise<Block>,
): Promise<AgentCandidates> {
  const { below, limit } = query
  const canBind = below === undefined || below <= Number.MAX_SAFE_INTEGER
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [selectAgentPage(db, canBind ? query : { ...query, below: undefined })],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [FILTERED_EVENTS] },
  })
  const indexed = ((results[0]?.results ?? []) as { agent_id: number }[]).map(({ agent_id }) => BigInt(agent_id))
  // If the page is full, older agents belong to the next page.
  const end = indexed.length > limit ? indexed.at(-1) : undefined
  const changed = logs
    .map(({ topics }) => BigInt(topics[1] ?? 0))
    .filter(id => id >= (end ?? 0n) && (below === undefined || id < below))
  const ids = [...new Set([...indexed, ...changed])].sort((a, b) => (a < b ? 1 : -1))
  return { ids, end, asOf, lagBlocks }
}

/** Returns the query for a page and one more row, which shows whether another page follows. */
export function selectAgentPage(
  db: Pick<D1Database, 'prepare'>,
  { vault, track, status, below, limit }: AgentQuery,
): D1PreparedStatement {
  const filters: [column: string, value: Address | number][] = []
  if (vault !== undefined) filters.push(['vault', vault])
  if (track !== undefined) filters.push(['track', track])
  if (status !== undefined) filters.push(['status', status])
  const columns = filters.map(([column]) => column)
  const conditions = [...columns.map(column => `${column} = ?`), 'until IS NULL']
  const values = filters.map(([, value]) => value)
  if (below) {
    conditions.push('agent_id < ?')
    values.push(Number(below))
  }
  return db
    .prepare(
      `SELECT agent_id FROM agents INDEXED BY ${indexByColumns[columns.join(' ')]}
      WHERE ${conditions.join(' AND ')} ORDER BY agent_id DESC LIMIT ?`,
    )
    .bind(...values, limit + 1)
}

/** The index for each set of filters. It is named because the planner has no statistics and would guess. */
const indexByColumns: Record<string, string> = {
  '': 'agents_now',
  vault: 'agents_vault_now',
  track: 'agents_track_now',
  status: 'agents_status',
  'vault track': 'agents_vault_track',
  'vault status': 'agents_vault_status',
  'track status': 'agents_track',
  'vault track status': 'agents_vault',
}

/** Returns whether a filter selects an agent. */
export const matchesFilter = (agent: Required<AgentFilter>, { vault, track, status }: AgentFilter): boolean =>
  (vault === undefined || agent.vault === vault) &&
  (track === undefined || agent.track === track) &&
  (status === undefined || agent.status === status)

/**
 * Reads the ids of the agents that may have a word in their names which begins with a prefix at `asOf`: indexed ones in the order
 * of these words, then those registered since. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readAgentIdsByName(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: Chain },
  prefix: string,
  head: Promise<Block>,
): Promise<{ ids: bigint[]; asOf: Block; lagBlocks: number }> {
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [selectAgentsByName(db, prefix)],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [[REGISTERED]] },
  })
  const indexed = (results[0]?.results ?? []) as { agent_id: number }[]
  const ids = [...indexed.map(({ agent_id }) => BigInt(agent_id)), ...logs.map(({ topics }) => BigInt(topics[1] ?? 0))]
  return { ids: [...new Set(ids)], asOf, lagBlocks }
}

/** The events that name an agent's new owner, in the third topic. */
const OWNER_EVENTS = [REGISTERED, eventTopic(agentRegistryAbi, 'AgentOwnershipTransferred')]

const AGENTS_OF_OWNER = 'SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ? AND until IS NULL'

/**
 * Reads the ids of the agents that an owner may have at `asOf`, ascending: those it had at the cursor and those it
 * received since. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readAgentIdsOfOwner(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: Chain },
  owner: Address,
  head: Promise<Block>,
): Promise<{ ids: bigint[] } & SnapshotFacts> {
  const { results, logs, asOf, lagBlocks, rowsRead } = await snapshots.readSnapshot({
    queries: db => [db.prepare(AGENTS_OF_OWNER).bind(owner)],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [OWNER_EVENTS, null, null, pad(owner)] },
  })
  const indexed = (results[0]?.results ?? []) as { agent_id: number }[]
  const ids = new Set([
    ...indexed.map(({ agent_id }) => BigInt(agent_id)),
    ...logs.map(({ topics }) => BigInt(topics[1] ?? 0)),
  ])
  return { ids: [...ids].sort((a, b) => (a < b ? -1 : 1)), asOf, lagBlocks, rowsRead }
}
