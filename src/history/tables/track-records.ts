import type { Period } from '@agent-trading-service/protocol/leaderboard-period'
import { ORDERINGS, orderings, type StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { TrackRecord } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'
import { bindRows, deleteAbove, type RevertibleTable } from './table.ts'

/** A track record of an agent in one capital mode. */
export type RecordRow = { agentId: number; capitalMode: number; record: TrackRecord }

/** Every version that a reorg could bring back. The current one has no `until`. */
export const trackRecordsTable: RevertibleTable = {
  name: 'track_records',
  rollback: (db, block) => [
    deleteAbove(db, 'track_records', block),
    db.prepare('UPDATE track_records SET until = NULL WHERE until > ?1').bind(block),
  ],
}

const END_CURRENT = `UPDATE track_records SET until = value ->> 2 FROM json_each(?1)
  WHERE agent_id = value ->> 0 AND capital_mode = value ->> 1 AND block < value ->> 2 AND until IS NULL`
const INSERT_RECORD = `INSERT INTO track_records (agent_id, capital_mode, block, record)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`

/** Returns statements that add versions of records at a block. */
export function insertTrackRecords(db: D1Database, block: number, rows: readonly RecordRow[]): D1PreparedStatement[] {
  const values = rows.map(({ agentId, capitalMode, record }) => [
    agentId,
    capitalMode,
    block,
    JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)),
  ])
  return [END_CURRENT, INSERT_RECORD].flatMap(sql => bindRows(db, sql, values))
}

/** Reads the current records of agents. */
export async function readTrackRecords(db: D1Database, agentIds: readonly number[]): Promise<RecordRow[]> {
  const { results } = await db
    .prepare(
      `SELECT agent_id AS agentId, capital_mode AS capitalMode, record FROM track_records
      WHERE agent_id IN (SELECT value FROM json_each(?1)) AND until IS NULL`,
    )
    .bind(JSON.stringify(agentIds))
    .all<{ agentId: number; capitalMode: number; record: string }>()
  return results.map(({ agentId, capitalMode, record }) => ({ agentId, capitalMode, record: parseRecord(record) }))
}

const parseRecord = (text: string): TrackRecord =>
  JSON.parse(text, (_, value) =>
    typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  )

/** Returns a statement that deletes the versions that ended at or before a block. */
export const deleteEndedVersions = (
  db: D1Database,
  table: 'track_records' | 'standings',
  block: number,
): D1PreparedStatement => db.prepare(`DELETE FROM ${table} WHERE until <= ?1`).bind(block)

/** A row of the leaderboard, computed as of `block`. */
export type Standing = {
  agentId: number
  capitalMode: number
  period: Period
  start: number
  block: number
  vault: Address
  track: number
  figures: StandingFigures
}

/** Every version that a page could still show. The current one has no `until`. */
export const standingsTable: RevertibleTable = {
  name: 'standings',
  rollback: (db, block) => [
    deleteAbove(db, 'standings', block),
    db.prepare('UPDATE standings SET until = NULL WHERE until > ?1').bind(block),
  ],
}

const IS_SAME = `standings.agent_id = value ->> 0 AND standings.capital_mode = value ->> 1
  AND standings.period = value ->> 2 AND standings.start = value ->> 3`
const END_CHANGED = `UPDATE standings SET until = value ->> 4 FROM json_each(?1)
  WHERE ${IS_SAME} AND until IS NULL AND block < value ->> 4 AND (figures <> value ->> 12 OR track <> value ->> 6)`
/** A version equal to the current one is not stored. */
const INSERT_STANDING = `INSERT INTO standings (agent_id, capital_mode, period, start, block, vault, track, trades,
    by_return, by_drawdown, by_calmar, by_sharpe, figures)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12
  FROM json_each(?1) WHERE NOT EXISTS (SELECT 1 FROM standings WHERE ${IS_SAME} AND until IS NULL)
  ON CONFLICT DO NOTHING`

/** Returns statements that add standings. */
export function insertStandings(db: D1Database, standings: readonly Standing[]): D1PreparedStatement[] {
  const rows = standings.map(({ agentId, capitalMode, period, start, block, vault, track, figures }) => [
    agentId,
    capitalMode,
    period,
    start,
    block,
    vault,
    track,
    figures.trades,
    ...ORDERINGS.map(ordering => orderings[ordering](figures)),
    JSON.stringify(figures),
  ])
  return [END_CHANGED, INSERT_STANDING].flatMap(sql => bindRows(db, sql, rows))
}
