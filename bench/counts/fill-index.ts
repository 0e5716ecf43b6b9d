import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { addHour, HOUR_SECONDS, openScore } from '@agent-trading-service/protocol/leaderboard-formulas'
import { PERIODS, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { TrackRecord } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'
import { agentsTable } from '../../src/history/tables/agents.ts'
import { insertRecords } from '../../src/history/tables/track-records.ts'
import { TRADE_COLUMNS } from '../../src/history/tables/trades.ts'
import { agentIdAt } from './synthetic-agents.ts'

const ROWS_PER_BATCH = 1_000
const AGENTS_PER_OWNER = 10

/** Adds agents of a vault, each with a track record, from a block that the index has. */
export async function fillIndex(
  db: D1Database,
  { count, vault, block, timestamp }: { count: number; vault: Address; block: number; timestamp: number },
): Promise<void> {
  for (let from = 0; from < count; from += ROWS_PER_BATCH) {
    const ids = Array.from({ length: Math.min(ROWS_PER_BATCH, count - from) }, (_, index) => agentIdAt(from + index))
    await db.batch([
      ...agentsTable.insert(
        db,
        ids.map((agentId, index) => ({
          agentId,
          block,
          logIndex: 0,
          owner: `0x${Math.floor((from + index) / AGENTS_PER_OWNER)
            .toString(16)
            .padStart(40, '0')}` as const,
          vault,
          track: 0,
          status: 1,
          given: 0,
          timestamp,
        })),
      ),
    ])
  }
  const hour = Math.floor(timestamp / HOUR_SECONDS)
  const records = Array.from({ length: count }, (_, index) => ({
    agentId: agentIdAt(index),
    capitalMode: CapitalMode.Simulated,
    vault,
    track: 0,
    cap: 10_000_000_000n,
    record: recordAt(hour, BigInt(index)),
  }))
  await db.batch([
    db.prepare('DELETE FROM track_records'),
    ...insertRecords(db, { hour, fromBlock: block, records }, block),
  ])
}

const TRADES_PER_STATEMENT = 100_000

/**
 * Adds copies of an agent's newest trade, numbers `first` to `count - 1`, spread over the blocks up to one that the
 * index has and over the times from `from` to `to` (Unix seconds), with an hourly price of the token. Returns how many
 * rows that wrote, and the size of the database.
 */
export async function fillTrades(
  db: D1Database,
  range: { agentId: number; first: number; count: number; block: number; from: number; to: number },
): Promise<{ rowsWritten: number; bytes: number }> {
  const { agentId, first, count, block, from, to } = range
  const newest = await db
    .prepare(
      'SELECT token, block, log_index FROM trades WHERE agent_id = ? ORDER BY block DESC, log_index DESC LIMIT 1',
    )
    .bind(agentId)
    .first<{ token: string; block: number; log_index: number }>()
  if (newest === null) throw new Error(`Agent ${agentId} has no trade.`)
  const numbers = (start: number, end: number) =>
    `WITH RECURSIVE n (i) AS (VALUES (${start}) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${end})`
  const copied: Record<string, string> = {
    block: `1 + i * ${block - 1} / ${count}`,
    log_index: `${COPIED_INDEX} + i`,
    timestamp: `${from} + i * ${to - from} / ${count}`,
    transaction_hash: `lower('0x' || hex(randomblob(32)))`,
  }
  const columns = [...TRADE_COLUMNS.split(', '), 'book']
  let rowsWritten = 0
  for (let start = first; start < count; start += TRADES_PER_STATEMENT) {
    const { meta } = await db
      .prepare(
        `${numbers(start, Math.min(count, start + TRADES_PER_STATEMENT))} INSERT INTO trades (${columns})
        SELECT ${columns.map(column => copied[column] ?? column)} FROM n CROSS JOIN trades
        WHERE agent_id = ?1 AND block = ?2 AND log_index = ?3`,
      )
      .bind(agentId, newest.block, newest.log_index)
      .run()
    rowsWritten += meta.rows_written
  }
  const hours = Math.floor((to - from) / HOUR_SECONDS)
  const start = Math.floor(from / HOUR_SECONDS) + 1
  const { meta } = await db
    .prepare(
      `${numbers(0, hours)} INSERT INTO candles (token, seconds, start, open, high, low, close, posts, last_block, observed_at)
      SELECT ?1, ${HOUR_SECONDS}, (${start} + i) * ${HOUR_SECONDS}, close, close, close, close, 1, 1 + i * ${block - 1} / ${hours},
        (${start} + i) * ${HOUR_SECONDS} FROM n, (SELECT price AS close FROM prices WHERE token = ?1 LIMIT 1)
      WHERE true ON CONFLICT DO NOTHING`,
    )
    .bind(newest.token)
    .run()
  return { rowsWritten, bytes: meta.size_after }
}

/** Above every index of a log, so that copies and trades of the chain have different places. */
const COPIED_INDEX = 1_000_000

/** Returns a record that holds nothing, with a score in each period. */
function recordAt(hour: number, pnl: bigint): TrackRecord {
  const sample = {
    hour: hour - 1,
    from: (hour - 1) * HOUR_SECONDS,
    at: hour * HOUR_SECONDS - 1,
    value: 0n,
    trades: 2,
    isGap: false,
  }
  const scores = PERIODS.map(period => {
    const start = periodStart(period, hour * HOUR_SECONDS)
    return [period, addHour(openScore(start, { ...sample, pnl, cap: 1_000_000n }), { ...sample, pnl, cap: 1_000_000n })]
  })
  return { hour, lastTrade: sample.at, cash: pnl, holdings: {}, pnl, scores: Object.fromEntries(scores) }
}
