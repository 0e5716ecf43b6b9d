import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { Snapshot, SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { selectAgentsByName } from './tables/agent-names.ts'
import type { Preparer } from './tables/table.ts'

/** Selects agents by their current vault, track and status. */
type AgentFilter = { vault?: Address | undefined; track?: number | undefined; status?: number | undefined }

/** Selects a page of agents, newest first. `below` is an exclusive upper bound of the id. */
export type AgentQuery = AgentFilter & { limit: number; below?: bigint | undefined }

export type AgentIds = { ids: bigint[] } & SnapshotFacts

/**
 * Reads the ids of the agents that may belong to a page at `asOf`, newest first: a page and one agent more. If there
 * may be more below them, `end` is the last id. Throws HISTORY_UNAVAILABLE.
 */
export async function readAgentCandidates(snapshots: SnapshotReader, query: AgentQuery, head: Promise<Block>) {
  const { below, limit } = query
  const canBind = below === undefined || below <= Number.MAX_SAFE_INTEGER
  const snapshot = await snapshots.readSnapshot(head, db => [
    selectAgentPage(db, canBind ? query : { ...query, below: undefined }),
  ])
  const ids = idsIn(snapshot)
  // If the page is full, older agents belong to the next page.
  return { ids, end: ids.length > limit ? ids.at(-1) : undefined, ...snapshot.facts }
}

/** Returns the query for a page and one more row, which shows whether another page follows. */
export function selectAgentPage(db: Preparer, { vault, track, status, below, limit }: AgentQuery): D1PreparedStatement {
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

export const matchesFilter = (agent: Required<AgentFilter>, { vault, track, status }: AgentFilter): boolean =>
  (vault === undefined || agent.vault === vault) &&
  (track === undefined || agent.track === track) &&
  (status === undefined || agent.status === status)

/**
 * Reads the ids of the agents that have a word in their names which begins with a prefix at `asOf`, in the order of
 * these words. Throws HISTORY_UNAVAILABLE.
 */
export async function readAgentIdsByName(
  snapshots: SnapshotReader,
  prefix: string,
  head: Promise<Block>,
): Promise<AgentIds> {
  const snapshot = await snapshots.readSnapshot(head, db => [selectAgentsByName(db, prefix)])
  return { ids: [...new Set(idsIn(snapshot))], ...snapshot.facts }
}

/** Others can give an owner any number of agents. */
const MAX_GIVEN = 20

const AGENTS_OF_OWNER =
  'SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ? AND given = 0 AND until IS NULL ORDER BY agent_id'
const GIVEN_AGENTS = `SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ? AND given = 1 AND until IS NULL
  ORDER BY agent_id DESC LIMIT ${MAX_GIVEN + 1}`

/**
 * Reads the ids of the agents that an owner has at `asOf`, ascending, then those of the newest that others have given
 * to it and it has neither accepted nor used; `hasMoreGiven` if there are more of these. Throws HISTORY_UNAVAILABLE.
 */
export async function readAgentIdsOfOwner(
  snapshots: SnapshotReader,
  owner: Address,
  head: Promise<Block>,
): Promise<AgentIds & { given: ReadonlySet<bigint>; hasMoreGiven: boolean }> {
  const snapshot = await snapshots.readSnapshot(head, db =>
    [AGENTS_OF_OWNER, GIVEN_AGENTS].map(sql => db.prepare(sql).bind(owner)),
  )
  const given = idsIn(snapshot, 1)
  const shown = given.slice(0, MAX_GIVEN)
  return {
    ids: [...idsIn(snapshot), ...shown],
    given: new Set(shown),
    hasMoreGiven: given.length > shown.length,
    ...snapshot.facts,
  }
}

const OLDEST_AGENT = `SELECT 1 FROM agents WHERE owner = ?1 AND given = 0 AND timestamp <= ?2 AND agent_id = (
  SELECT agent_id FROM agents INDEXED BY agents_owner WHERE owner = ?1 AND given = 0 AND until IS NULL ORDER BY agent_id LIMIT 1
) LIMIT 1`

/** Returns whether an owner had the oldest of its agents at a time in Unix seconds. Throws the database's error. */
export const readHadAgentBefore = async (db: D1Database, owner: Address, time: number): Promise<boolean> =>
  (await db.prepare(OLDEST_AGENT).bind(owner, time).first()) !== null

export const idsIn = ({ results }: Snapshot, statement = 0): bigint[] =>
  ((results[statement] ?? []) as { agent_id: number }[]).map(({ agent_id }) => BigInt(agent_id))

const COUNT_BY_STATUS = 'SELECT status, agents FROM vault_agents WHERE vault = ?1'
/** As digits, because numbers in results have only 53 bits. */
const USED = 'SELECT CAST(used AS TEXT) AS used FROM vault_use WHERE vault = ?1'

/**
 * Reads how many agents a vault has by status, and what their open positions with real capital cost in USDC base units.
 * Throws HISTORY_UNAVAILABLE.
 */
export async function readVaultAgentSummary(snapshots: SnapshotReader, vault: Address, head: Block) {
  const { results, facts } = await snapshots.readSnapshot(head, db =>
    [COUNT_BY_STATUS, USED].map(sql => db.prepare(sql).bind(vault)),
  )
  const [counts = [], uses = []] = results
  return {
    byStatus: new Map((counts as { status: number; agents: number }[]).map(row => [row.status, row.agents])),
    used: BigInt((uses as { used: string }[])[0]?.used ?? 0),
    ...facts,
  }
}
