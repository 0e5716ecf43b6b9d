import type { Period } from '@agent-trading-service/protocol/leaderboard-period'
import type { StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { TrackRecord } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'
import { batchesOf } from '../../concurrency.ts'
import type { Preparer, SqlRow } from './table.ts'

/** The record of an agent in one capital mode, and the facts of the agent, at the start of an hour. */
export type StoredRecord = {
  agentId: number
  capitalMode: number
  vault: Address
  track: number
  /** The agent's last allocation cap above 0, in USDC base units. */
  cap: bigint
  record: TrackRecord
}

/** All records at the start of an hour (since the epoch). Up to `fromBlock`, every trade is in them. */
export type RecordsVersion = { hour: number; fromBlock: number; records: StoredRecord[] }

/** Before the first trade. */
const NO_RECORDS: RecordsVersion = { hour: 0, fromBlock: -1, records: [] }

/** An agent's result in a period, in one capital mode, computed as of `block`. */
export type Standing = {
  agentId: number
  capitalMode: number
  vault: Address
  track: number
  block: number
  figures: StandingFigures
}

/** Entries per row. A row may have 2 MB; a record has about 1 KB, 4 KB with the most gaps. */
const ENTRIES_PER_PART = 400

const partsOf = <Entry>(entries: readonly Entry[]): string[] =>
  (entries.length === 0 ? [[]] : batchesOf(entries, ENTRIES_PER_PART)).map(part =>
    JSON.stringify(part, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)),
  )

/** Parses a part without a reviver, which takes three times as long: a leaderboard parses all parts. */
const parsePart = <Entry>(content: string) => withBigInts(JSON.parse(content)) as Entry[]

/** Replaces the integers that `partsOf` wrote as strings, in place. No other string of an entry ends in an n. */
function withBigInts(value: unknown): unknown {
  if (typeof value === 'string') return value.endsWith('n') ? BigInt(value.slice(0, -1)) : value
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Record<string, unknown>
  for (const name in fields) fields[name] = withBigInts(fields[name])
  return value
}

/** Returns statements that add a version of the records. `block` is the final block that showed that its hour began. */
export const insertRecords = (db: D1Database, { hour, fromBlock, records }: RecordsVersion, block: number) =>
  partsOf(records).map((content, part) =>
    db
      .prepare('INSERT INTO track_records (hour, part, from_block, block, content) VALUES (?1, ?2, ?3, ?4, ?5)')
      .bind(hour, part, fromBlock, block, content),
  )

const NEWEST = `FROM track_records WHERE hour = (
  SELECT hour FROM track_records WHERE hour <= ?1 / 3600 ORDER BY hour DESC LIMIT 1) ORDER BY part`
const OF_AGENT = `SELECT json_group_array(json(value)) FROM json_each(content) WHERE value ->> 'agentId' = ?2`

/** Returns a query for the newest version of the records at a time in Unix seconds. */
export const selectRecords = (db: Preparer, time: number) =>
  db.prepare(`SELECT hour, from_block, content ${NEWEST}`).bind(time)

/** Returns a query for those of one agent; its rows are as those of `selectRecords`. */
export const selectRecordsOfAgent = (db: Preparer, agentId: number, time: number) =>
  db.prepare(`SELECT hour, from_block, (${OF_AGENT}) AS content ${NEWEST}`).bind(time, agentId)

/** Returns the version of the rows of `selectRecords`. */
export function toRecords(rows: readonly SqlRow[] = []): RecordsVersion {
  const [first] = rows as { hour: number; from_block: number; content: string }[]
  if (first === undefined) return NO_RECORDS
  return {
    hour: first.hour,
    fromBlock: first.from_block,
    records: rows.flatMap(({ content }) => parsePart<StoredRecord>(content as string)),
  }
}

/** What an agent's trades with the vault's money have earned since its registration, in USDC base units. */
export type Contribution = { agentId: number; pnl: bigint }

/** The agents of a vault by what they earned or lost: as many as a response lists. */
const MAX_CONTRIBUTIONS = 20
const CONTRIBUTIONS = `SELECT hour, value ->> '$.agentId' AS agentId, value ->> '$.record.scores.all.pnl' AS pnl
  FROM track_records CROSS JOIN json_each(content)
  WHERE hour = (SELECT max(hour) FROM track_records) AND value ->> '$.vault' = ?1 AND value ->> '$.capitalMode' = ?2
  ORDER BY abs(CAST(pnl AS INTEGER)) DESC, agentId LIMIT ${MAX_CONTRIBUTIONS}`

/**
 * Reads the largest contributions to a vault at the start of the newest hour of the records, which is undefined without
 * one. `rowsRead` grows with the number of agents.
 */
export async function readContributions(
  db: D1Database,
  vault: Address,
  capitalMode: number,
): Promise<{ hour: number | undefined; contributions: Contribution[]; rowsRead: number }> {
  const { results, meta } = await db
    .prepare(CONTRIBUTIONS)
    .bind(vault, capitalMode)
    .all<{ hour: number; agentId: number; pnl: string | null }>()
  return {
    hour: results[0]?.hour,
    contributions: results.map(({ agentId, pnl }) => ({ agentId, pnl: BigInt(pnl?.replace('n', '') ?? 0) })),
    rowsRead: meta.rows_read,
  }
}

/** How many older versions stay, so that the pages of one read show one block. */
const KEPT_VERSIONS = 3

/** Returns a statement that deletes all but the newest versions. */
export const deleteOldRecords = (db: D1Database): D1PreparedStatement =>
  db.prepare(
    `DELETE FROM track_records WHERE hour < (
      SELECT hour FROM track_records WHERE part = 0 ORDER BY hour DESC LIMIT 1 OFFSET ${KEPT_VERSIONS})`,
  )

/** Returns statements that store the results of a period that ended before an hour. */
export const insertStandings = (
  db: D1Database,
  { period, start }: { period: Period; start: number },
  standings: readonly Standing[],
  { hour, block }: { hour: number; block: number },
): D1PreparedStatement[] =>
  partsOf(standings).map((content, part) =>
    db
      .prepare('INSERT INTO standings (period, start, part, hour, block, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)')
      .bind(period, start, part, hour, block, content),
  )

/** Returns a query for the results of a period that had ended at the start of an hour. */
export const selectStandings = (db: Preparer, { period, start }: { period: Period; start: number }, time: number) =>
  db
    .prepare('SELECT content FROM standings WHERE period = ?1 AND start = ?2 AND hour <= ?3 / 3600 ORDER BY part')
    .bind(period, start, time)

/** Returns the results of rows of `selectStandings`. */
export const toStandings = (rows: readonly SqlRow[]): Standing[] =>
  rows.flatMap(({ content }) => parsePart<Standing>(content as string))
