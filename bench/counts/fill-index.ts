import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { PERIODS, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { Address } from 'viem'
import { agentsTable } from '../../src/history/tables/agents.ts'
import { insertStandings } from '../../src/history/tables/track-records.ts'
import { agentIdAt } from './synthetic-agents.ts'

const ROWS_PER_BATCH = 1_000
const AGENTS_PER_OWNER = 10

const FIGURES: StandingFigures = {
  pnl: '0',
  returnPpm: 0,
  drawdownPpm: 0,
  calmarMilli: null,
  sharpeMilli: null,
  trades: 1,
  hours: 1,
  firstSample: 0,
  lastSample: 0,
  gapHours: 0,
  gaps: [],
}
/** A sample of an agent with one open position, as old as the index. */
const INSERT_SAMPLE = `INSERT INTO equity
    (agent_id, timestamp, block, vault, cap, used, equity, realized, unrealized, drawdown_bps, open_count, stale)
  SELECT value, ?2, ?3, ?4, '10000000000', '1000000', '10000000000', '0', '0', 0, 1, 0 FROM json_each(?1)`

/** Adds agents of a vault, each with an open position, a sample and standings, from a block that the index has. */
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
      db.prepare(INSERT_SAMPLE).bind(JSON.stringify(ids), timestamp, block, vault),
      ...insertStandings(
        db,
        ids.flatMap((agentId, index) =>
          PERIODS.map(period => ({
            agentId,
            capitalMode: CapitalMode.Simulated,
            period,
            start: periodStart(period, timestamp),
            block,
            vault,
            track: 0,
            figures: { ...FIGURES, returnPpm: from + index },
          })),
        ),
      ),
    ])
  }
}
