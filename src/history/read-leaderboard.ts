import type { Address } from 'viem'
import type { Block } from '../chain/block-number-and-time.ts'
import { type Period, periodStart } from '../protocol/period.ts'
import type { Ordering, StandingFigures } from '../protocol/standing-figures.ts'
import { KEPT_VERSION_BLOCKS } from './compute-track-records.ts'
import type { SnapshotReader } from './read-index-to-head.ts'
import type { Standing } from './tables/standings.ts'

/** Where the next page starts: after this agent, in the order as of `block`. `rank` is the last one of this page. */
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

/** Blocks by which the cursor may pass the end of a version before a page of it is read. */
const EXPIRY_MARGIN_BLOCKS = 200

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
    queries: db => [selectStandings(db, query, start)],
    head: Promise.resolve(head),
    filter: { address: [], topics: [] },
    until: 0n, // standings do not come from logs
  })
  const { cursor, asOf, lagBlocks } = snapshot
  const block = query.cursor?.block ?? cursor.block
  if (block < cursor.block - KEPT_VERSION_BLOCKS + EXPIRY_MARGIN_BLOCKS) return undefined
  const rows = (snapshot.results[0]?.results ?? []) as StandingRow[]
  const rank = query.cursor?.rank ?? 0
  const page = rows.slice(0, limit)
  const last = page.at(-1)
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
    next:
      rows.length > limit && last
        ? {
            block,
            start,
            value: last.value,
            agentId: last.agent_id,
            capitalMode: last.capital_mode,
            rank: rank + page.length,
          }
        : undefined,
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

/** Returns the query for a page and one more row, which tells whether another page follows. */
export function selectStandings(
  db: Pick<D1Database, 'prepare'>,
  { period, ordering, minTrades, limit, vault, track, capitalMode, cursor }: LeaderboardQuery,
  start: number,
): D1PreparedStatement {
  const conditions = ['period = ?', 'start = ?', 'trades >= ?']
  const values: (string | number)[] = [period, start, minTrades]
  const filterBy = (condition: string, ...bindings: (string | number)[]) => {
    conditions.push(condition)
    values.push(...bindings)
  }
  if (cursor === undefined) filterBy('standings.until IS NULL')
  else {
    filterBy('standings.block <= ? AND (standings.until IS NULL OR standings.until > ?)', cursor.block, cursor.block)
    filterBy(
      `(by_${ordering}, standings.agent_id, capital_mode) > (?, ?, ?)`,
      cursor.value,
      cursor.agentId,
      cursor.capitalMode,
    )
  }
  if (vault !== undefined) filterBy('standings.vault = ?', vault)
  if (track !== undefined) filterBy('standings.track = ?', track)
  if (capitalMode !== undefined) filterBy('capital_mode = ?', capitalMode)
  return db
    .prepare(
      `SELECT standings.agent_id, capital_mode, standings.block, standings.vault, standings.track, figures,
        by_${ordering} AS value, owner,
        (SELECT count(*) FROM agents AS others INDEXED BY agents_owner
          WHERE others.owner = agents.owner AND others.until IS NULL) AS agents
      FROM standings INDEXED BY standings_${ordering}
      JOIN agents INDEXED BY agents_now ON agents.agent_id = standings.agent_id AND agents.until IS NULL
      WHERE ${conditions.join(' AND ')}
      ORDER BY by_${ordering}, standings.agent_id, capital_mode LIMIT ?`,
    )
    .bind(...values, limit + 1)
}
