import type { IndexCursor } from './tables/cursor.ts'

const DAY_SECONDS = 86_400
/** Every posted price is kept this long; then the candles of its hour and day remain. */
const KEPT_SECONDS = 90 * DAY_SECONDS
/** Posts per page. Twenty tokens with a price per minute leave 1,200 in an hour. */
const PAGE_SIZE = 5_000

/** Returns the time from which every posted price is kept, at a time; both in Unix seconds. */
export const keptPostsFrom = (timestamp: number): number => timestamp - (timestamp % DAY_SECONDS) - KEPT_SECONDS

const DELETE_POSTS = `DELETE FROM prices WHERE (token, block, log_index) IN (
    SELECT token, block, log_index FROM prices INDEXED BY prices_block
    WHERE block <= (SELECT candles_to FROM cursor) AND timestamp < ?1 ORDER BY block LIMIT ?2)`

/** Returns a statement that deletes a page of posts that are in the candles and no longer kept. */
export const deleteOldPosts = (db: D1Database, { timestamp }: Pick<IndexCursor, 'timestamp'>) =>
  db.prepare(DELETE_POSTS).bind(keptPostsFrom(timestamp), PAGE_SIZE)

/** The leaderboards of this many past days are kept, of weeks and months all. */
export const KEPT_LEADERBOARD_DAYS = 90

/** Returns the start of the oldest day whose leaderboard is kept at a time; both in Unix seconds. */
export const oldestKeptDay = (timestamp: number): number =>
  timestamp - (timestamp % DAY_SECONDS) - KEPT_LEADERBOARD_DAYS * DAY_SECONDS

export const deleteOldStandings = (db: D1Database, { timestamp }: Pick<IndexCursor, 'timestamp'>) =>
  db.prepare("DELETE FROM standings WHERE period = 'day' AND start < ?1").bind(oldestKeptDay(timestamp))
