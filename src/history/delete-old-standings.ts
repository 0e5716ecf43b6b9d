import type { IndexCursor } from './tables/cursor.ts'

const DAY_SECONDS = 86_400
/** The leaderboards of this many past days are kept, of weeks and months all. */
export const KEPT_LEADERBOARD_DAYS = 90
/** Entries per page. With 10,000 agents, a day leaves 10,000, and it has 96 quarters of an hour. */
const PAGE_SIZE = 5_000

const DELETE_PAGE = `DELETE FROM standings WHERE (agent_id, capital_mode, period, start, block) IN (
    SELECT agent_id, capital_mode, period, start, block FROM standings INDEXED BY standings_return
    WHERE period = 'day' AND start < ?1 AND block <= ?2 LIMIT ?3)`

/** Returns the start of the oldest day whose leaderboard is kept at a time; both in Unix seconds. */
export const oldestKeptDay = (timestamp: number): number =>
  timestamp - (timestamp % DAY_SECONDS) - KEPT_LEADERBOARD_DAYS * DAY_SECONDS

/** Returns statements that delete a page of final leaderboard entries of days that are no longer kept. */
export const deleteOldStandings = (
  db: D1Database,
  { timestamp, final }: Pick<IndexCursor, 'timestamp' | 'final'>,
): D1PreparedStatement[] => [db.prepare(DELETE_PAGE).bind(oldestKeptDay(timestamp), final, PAGE_SIZE)]
