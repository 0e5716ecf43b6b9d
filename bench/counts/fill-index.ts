import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { addHour, HOUR_SECONDS, openScore } from '@agent-trading-service/protocol/leaderboard-formulas'
import { PERIODS, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { TrackRecord } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'
import { agentsTable } from '../../src/history/tables/agents.ts'
import { insertRecords } from '../../src/history/tables/track-records.ts'
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
