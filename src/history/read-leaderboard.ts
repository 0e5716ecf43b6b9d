import { type Period, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { Ordering, StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import { KEPT_VERSION_BLOCKS } from './compute-track-records.ts'
import type { SnapshotReader } from './read-index-to-head.ts'
import type { Standing } from './tables/track-records.ts'

/** Where the next page starts: after this agent, in the order as of `block`. `rank` is the last rank of this page. */
export type LeaderboardCursor = {
  block: number
  start: number
  value: number
  agentId: number
  capitalMode: number
  rank: number
}

export type LeaderboardQuery = {
  period: Period
  ordering: Ordering
  minTrades: number
  limit: number
  vault?: Address | undefined
  track?: number | undefined
  capitalMode?: number | undefined
  /** A time in the period, in Unix seconds; default: now. */
  at?: number | undefined
  cursor?: LeaderboardCursor | undefined
}

/** A standing, its rank, and how many agents its owner has. */
export type RankedStanding = Standing & { rank: number; owner: Address; agentsOfOwner: number }

type Leaderboard = {
  start: number
  standings: RankedStanding[]
  next: LeaderboardCursor | undefined
  asOf: Block
  lagBlocks: number
}

type StandingRow = {
  agent_id: number
  capital_mode: number
  block: number
  vault: Address
  track: number
  figures: string
  value: number
  owner: Address
  agents: number
}

/** The entry at which the scan of a page stopped. */
type ScanRow = Pick<StandingRow, 'agent_id' | 'capital_mode' | 'value'>

/** A page cursor expires this many blocks before its versions are deleted, because the index advances during a read. */
const EXPIRY_MARGIN_BLOCKS = 200
/**
 * The most entries per page that filters may skip. A page that reaches this is short, and its cursor continues there.
 */
export const MAX_SCANNED_ENTRIES = 500

/**
 * Reads a page of a leaderboard. All pages of one read show the versions of one block; undefined if the cursor is
 * too old for that. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readLeaderboard(
  snapshots: SnapshotReader,
  query: LeaderboardQuery,
  head: Block,
): Promise<Leaderboard | undefined> {
  const { period, at = Number(head.timestamp), limit } = query
  const start = query.cursor?.start ?? periodStart(period, at)
  const snapshot = await snapshots.readSnapshot({
    queries: db => [selectStandings(db, query, start), selectScanEnd(db, query, start)],
    head: Promise.resolve(head),
    filter: { address: [], topics: [] },
    until: 0n, // standings do not come from logs
  })
  const { cursor, asOf, lagBlocks } = snapshot
  const block = query.cursor?.block ?? cursor.block
  if (block < cursor.block - KEPT_VERSION_BLOCKS + EXPIRY_MARGIN_BLOCKS) return undefined
  const [rows, [scan]] = snapshot.results.map(({ results }) => results) as [StandingRow[], ScanRow[]]
  const rank = query.cursor?.rank ?? 0
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : scan
  return {
    start,
    standings: page.map((row, index) => ({
      ...toStanding(row),
      period,
      start,
      rank: rank + index + 1,
      owner: row.owner,
      agentsOfOwner: row.agents,
    })),
    next: last && {
      block,
      start,
      value: last.value,
      agentId: last.agent_id,
      capitalMode: last.capital_mode,
      rank: rank + page.length,
    },
    asOf,
    lagBlocks,
  }
}

const toStanding = ({ agent_id, capital_mode, block, vault, track, figures }: StandingRow) => ({
  agentId: agent_id,
  capitalMode: capital_mode,
  block,
  vault,
  track,
  figures: JSON.parse(figures) as StandingFigures,
})

/** A part of a statement with its bindings. */
type SqlPart = { sql: string; values: (string | number)[] }

/** Selects the entries of a leaderboard from the cursor on, in order. */
function entriesOf({ period, ordering, cursor }: LeaderboardQuery, start: number): SqlPart {
  const versions =
    cursor === undefined
      ? { sql: 'until IS NULL', values: [] }
      : {
          sql: `block <= ? AND (until IS NULL OR until > ?) AND (by_${ordering}, agent_id, capital_mode) > (?, ?, ?)`,
          values: [cursor.block, cursor.block, cursor.value, cursor.agentId, cursor.capitalMode],
        }
  return {
    sql: `SELECT *, by_${ordering} AS value FROM standings INDEXED BY standings_${ordering}
      WHERE period = ? AND start = ? AND ${versions.sql} ORDER BY by_${ordering}, agent_id, capital_mode`,
    values: [period, start, ...versions.values],
  }
}

/** Selects a page and one more entry, which shows whether another page follows. */
function pageOf(query: LeaderboardQuery, start: number): SqlPart {
  const { minTrades, limit, vault, track, capitalMode } = query
  const entries = entriesOf(query, start)
  const filters: [condition: string, value: string | number][] = [['trades >= ?', minTrades]]
  if (vault !== undefined) filters.push(['vault = ?', vault])
  if (track !== undefined) filters.push(['track = ?', track])
  if (capitalMode !== undefined) filters.push(['capital_mode = ?', capitalMode])
  return {
    // Without an ORDER BY of its own: the entries are in order already, and SQLite would read all of them before the
    // first row.
    sql: `SELECT * FROM (${entries.sql} LIMIT ?) WHERE ${filters.map(([condition]) => condition).join(' AND ')} LIMIT ?`,
    values: [...entries.values, MAX_SCANNED_ENTRIES, ...filters.map(([, value]) => value), limit + 1],
  }
}

/** Returns the query for a page and one more row, with the owners of its agents. */
export function selectStandings(
  db: Pick<D1Database, 'prepare'>,
  query: LeaderboardQuery,
  start: number,
): D1PreparedStatement {
  const page = pageOf(query, start)
  return db
    .prepare(
      `SELECT page.agent_id, capital_mode, page.block, page.vault, page.track, figures, value, agents.owner,
        owner_agents.agents
      FROM (${page.sql}) AS page
      CROSS JOIN agents INDEXED BY agents_now ON agents.agent_id = page.agent_id AND agents.until IS NULL
      CROSS JOIN owner_agents ON owner_agents.owner = agents.owner
      ORDER BY value, page.agent_id, capital_mode`,
    )
    .bind(...page.values)
}

/** Returns the query for the last entry that a short page skipped; it finds none if no entries follow. */
function selectScanEnd(db: Pick<D1Database, 'prepare'>, query: LeaderboardQuery, start: number): D1PreparedStatement {
  const [entries, page] = [entriesOf(query, start), pageOf(query, start)]
  return db
    .prepare(
      `SELECT agent_id, capital_mode, value FROM (
        ${entries.sql} LIMIT (SELECT count(*) <= ? FROM (${page.sql})) OFFSET ?)`,
    )
    .bind(...entries.values, query.limit, ...page.values, MAX_SCANNED_ENTRIES - 1)
}
