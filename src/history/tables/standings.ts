import type { Period } from '@agent-trading-service/protocol/leaderboard-period'
import { ORDERINGS, orderings, type StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { Address } from 'viem'
import { bindRows, deleteAbove, type RevertibleTable } from './table.ts'

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
const INSERT = `INSERT INTO standings (agent_id, capital_mode, period, start, block, vault, track, trades,
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
  return [END_CHANGED, INSERT].flatMap(sql => bindRows(db, sql, rows))
}
