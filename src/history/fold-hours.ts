import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { HOUR_SECONDS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { type Period, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import { standingFiguresOf } from '@agent-trading-service/protocol/standing-figures'
import { foldRecord, hourOf, type PeriodScore, scoresOf } from '@agent-trading-service/protocol/track-record'
import type { Chain } from '../chain/configured-chain.ts'
import { blockRequest } from '../rpc/requests.ts'
import { createMarket, type PassRows, recordsOf, selectPassRows, toPassRows } from './continue-records.ts'
import { deleteOldPosts, deleteOldStandings } from './delete-old-rows.ts'
import { rollUpCandles } from './tables/candles.ts'
import { commitAtCursor, type IndexCursor } from './tables/cursor.ts'
import { insertWeeklyResults, type WeeklyResult } from './tables/feedback.ts'
import { readBatch, type SqlRow } from './tables/table.ts'
import {
  deleteOldRecords,
  insertRecords,
  insertStandings,
  type RecordsVersion,
  type Standing,
  type StoredRecord,
  selectRecords,
  toRecords,
} from './tables/track-records.ts'
import { foldVaultBooks, insertVaultBooks } from './tables/vault-books.ts'

// Once an hour is final, one pass over its rows continues the track records of all agents and the books of all vaults.
// What happened since is added when somebody reads. So a held position costs nothing, however long it is held.

/** The most trades per pass, unless one hour has more. */
const MAX_TRADES = 10_000
/** The most hours per pass: each of them values what is held. */
const MAX_HOURS = 7 * 24

/**
 * Folds the next final hours. Returns whether more are left. Throws CursorMoved or CHAIN_UNREACHABLE; then nothing was
 * written.
 */
export async function foldHours(db: D1Database, chain: Chain, cursor: IndexCursor): Promise<boolean> {
  const newest = await db.prepare('SELECT max(hour) AS hour FROM track_records').first<number | null>('hour')
  const from = newest ?? (await readFirstHour(db))
  if (cursor.final < 0 || from === undefined || hourOf(cursor.timestamp) <= from) return false
  const header = await chain.rpc.read(blockRequest(cursor.final), header => header !== null)
  if (header === null || hourOf(Number(header.timestamp)) <= from) return false
  const before = toRecords((await selectRecords(db, cursor.timestamp).all<SqlRow>()).results)
  for (
    let statements = await rollUpCandles(db, cursor);
    statements.length > 0;
    statements = await rollUpCandles(db, cursor)
  )
    await commitAtCursor(db, cursor.hash, statements)
  const finalHour = hourOf(Number(header.timestamp))
  const hour = await endOfPass(db, before.fromBlock, { from, to: Math.min(finalHour, from + MAX_HOURS) })
  const bounds = { recordsAt: cursor.timestamp, block: cursor.final, time: hour * HOUR_SECONDS - 1 }
  const rows = toPassRows(await readBatch(db, selectPassRows(db, bounds)))
  const { version, ended } = await foldRecords(db, chain, { ...before, hour: from }, rows, hour)
  const vaultBooks = await foldVaultBooks(db, rows)
  await commitAtCursor(db, cursor.hash, [
    ...insertRecords(db, version, cursor.final),
    ...ended.flatMap(({ period, start, standings }) => {
      const final = standings.map(standing => ({ ...standing, block: cursor.final }))
      return insertStandings(db, { period, start }, final, { hour, block: cursor.final })
    }),
    ...insertWeeklyResults(db, ended.flatMap(weeklyResultsOf), cursor.final),
    ...insertVaultBooks(db, vaultBooks, cursor.final),
    deleteOldRecords(db),
    deleteOldStandings(db, cursor),
    deleteOldPosts(db, cursor),
  ])
  return hour < finalHour
}

const FIRST = `SELECT min(timestamp) AS first FROM (
  SELECT * FROM (SELECT timestamp FROM trades INDEXED BY trades_place WHERE block >= 0 ORDER BY block LIMIT 1)
  UNION ALL SELECT * FROM (SELECT timestamp FROM events WHERE block >= 0 ORDER BY block LIMIT 1))`

/** Reads the hour of the first trade or event; undefined if there is none. */
async function readFirstHour(db: D1Database): Promise<number | undefined> {
  const first = await db.prepare(FIRST).first<number | null>('first')
  return first === null ? undefined : hourOf(first)
}

const BEYOND = `SELECT timestamp FROM trades INDEXED BY trades_place WHERE block > ?1
  ORDER BY block, log_index LIMIT 1 OFFSET ${MAX_TRADES}`

/** Returns the hour at whose start a pass ends, so that it has few enough trades. */
async function endOfPass(
  db: D1Database,
  fromBlock: number,
  { from, to }: { from: number; to: number },
): Promise<number> {
  const beyond = await db.prepare(BEYOND).bind(fromBlock).first<number>('timestamp')
  return beyond === null ? to : Math.min(to, Math.max(hourOf(beyond), from + 1))
}

/** The results of a period that ended. */
type EndedPeriod = { period: Period; start: number; standings: Omit<Standing, 'block'>[] }

/** Returns the results of a week that agents are given feedback for. */
const weeklyResultsOf = ({ period, start, standings }: EndedPeriod): WeeklyResult[] =>
  standings
    .filter(({ capitalMode }) => period === 'week' && capitalMode === CapitalMode.Real)
    .map(({ agentId, vault, track, figures }) => ({ agentId, weekStart: start, vault, track, figures }))

/** Continues all records up to the start of an hour, and takes the results of periods that ended out of them. */
async function foldRecords(
  db: D1Database,
  chain: Chain,
  before: RecordsVersion,
  rows: PassRows,
  hour: number,
): Promise<{ version: RecordsVersion; ended: EndedPeriod[] }> {
  const inputs = await recordsOf(db, before, rows)
  const times = Array.from({ length: hour - before.hour }, (_, index) => (before.hour + index + 1) * HOUR_SECONDS - 1)
  const marketOf = await createMarket(db, chain, inputs, times)
  const records: StoredRecord[] = []
  const ended = new Map<string, EndedPeriod>()
  for (const input of inputs) {
    const { agentId, capitalMode, vault, track, executions } = input
    const folded = foldRecord(input.record, executions, hour, marketOf(input))
    if (folded === undefined) continue
    const isOver = ({ period, score }: PeriodScore) => score.start !== periodStart(period, hour * HOUR_SECONDS)
    const newest = scoresOf(folded.record)
    for (const { period, score } of [...folded.ended, ...newest.filter(isOver)]) {
      const key = `${period} ${score.start}`
      const entry = ended.get(key) ?? { period, start: score.start, standings: [] }
      ended.set(key, entry)
      entry.standings.push({ agentId, capitalMode, vault, track, figures: standingFiguresOf(score) })
    }
    const left = newest.filter(score => !isOver(score))
    const scores = Object.fromEntries(left.map(({ period, score }) => [period, score]))
    const cap = input.caps.at(-1)?.cap ?? 0n
    records.push({ agentId, capitalMode, vault, track, cap, record: { ...folded.record, scores } })
  }
  return { version: { hour, fromBlock: rows.lastBlock ?? before.fromBlock, records }, ended: [...ended.values()] }
}
