import type { IndexCursor } from './tables/cursor.ts'

const DAY_SECONDS = 86_400
/**
 * Rows per page. In a quarter of an hour, 10,000 agents leave 2,500 old samples, and twenty tokens with a price per minute 300 old
 * prices; a day leaves 10,000 entries of the leaderboard, and has 96 quarters of an hour.
 */
const PAGE_SIZE = 5_000
/** Hourly samples are kept this long: more than twice the longest hourly range that can be read. */
const HOURLY_SECONDS = 90 * DAY_SECONDS
/** The last block of the next page; NULL while its samples are still kept by the hour. */
const SAMPLES_PAGE_END = `SELECT max(block) AS block FROM (
    SELECT block, timestamp FROM equity INDEXED BY equity_block
    WHERE block > (SELECT thinned_to FROM sampling) ORDER BY block LIMIT ?2) WHERE timestamp < ?1`
/** Deletes the samples of the page that are not the last ones of their agents' days. */
const DELETE_SAMPLES = `DELETE FROM equity WHERE (agent_id, timestamp, block) IN (
    SELECT agent_id, timestamp, block FROM equity AS old INDEXED BY equity_block
    WHERE block > (SELECT thinned_to FROM sampling) AND block <= ?1 AND timestamp < ?2 AND until IS NOT NULL
      AND EXISTS (SELECT 1 FROM equity AS later WHERE later.agent_id = old.agent_id
        AND later.timestamp > old.timestamp AND later.timestamp < (old.timestamp / ${DAY_SECONDS} + 1) * ${DAY_SECONDS}))`

/**
 * Returns statements that thin one page of samples older than 90 days, from the oldest on: of each day, only an agent's
 * last sample stays. Run them in one transaction.
 */
export async function thinOldSamples(db: D1Database, { timestamp }: IndexCursor): Promise<D1PreparedStatement[]> {
  const keptFrom = timestamp - (timestamp % DAY_SECONDS) - HOURLY_SECONDS
  const end = await db.prepare(SAMPLES_PAGE_END).bind(keptFrom, PAGE_SIZE).first<number>('block')
  if (end === null) return []
  return [db.prepare(DELETE_SAMPLES).bind(end, keptFrom), db.prepare('UPDATE sampling SET thinned_to = ?1').bind(end)]
}

/** Every posted price is kept this long. Samples and track records only use the last one of each hour. */
const KEPT_SECONDS = 90 * DAY_SECONDS
/** The last block of the next page; NULL while all of its prices are kept. */
const PRICES_PAGE_END = `SELECT max(block) AS block FROM (
    SELECT block, timestamp FROM prices INDEXED BY prices_block
    WHERE block > (SELECT prices_thinned_to FROM sampling) AND block <= min(?1, (SELECT candles_to FROM cursor))
    ORDER BY block LIMIT ?3) WHERE timestamp < ?2`
/** Deletes the prices of the page whose next one is in the same hour. */
const DELETE_PRICES = `DELETE FROM prices WHERE (token, block, log_index) IN (
    SELECT token, block, log_index FROM prices AS old INDEXED BY prices_block
    WHERE block > (SELECT prices_thinned_to FROM sampling) AND block <= ?1 AND timestamp < ?2
      AND timestamp / 3600 = (SELECT next.timestamp / 3600 FROM prices AS next
        WHERE next.token = old.token AND (next.block, next.log_index) > (old.block, old.log_index)
        ORDER BY next.block, next.log_index LIMIT 1))`

/** Returns the time from which every posted price is kept, at a time; both in Unix seconds. */
export const keptPostsFrom = (timestamp: number): number => timestamp - (timestamp % DAY_SECONDS) - KEPT_SECONDS

/**
 * Returns statements that thin one page of the final prices of more than 90 days ago, from the oldest on: of each hour, only
 * a token's last price stays. They belong into one transaction.
 */
export async function thinOldPrices(
  db: D1Database,
  { timestamp, final }: Pick<IndexCursor, 'timestamp' | 'final'>,
): Promise<D1PreparedStatement[]> {
  const keptFrom = keptPostsFrom(timestamp)
  const end = await db.prepare(PRICES_PAGE_END).bind(final, keptFrom, PAGE_SIZE).first<number>('block')
  if (end === null) return []
  return [
    db.prepare(DELETE_PRICES).bind(end, keptFrom),
    db.prepare('UPDATE sampling SET prices_thinned_to = ?1').bind(end),
  ]
}

/** The leaderboards of this many past days are kept, of weeks and months all. */
export const KEPT_LEADERBOARD_DAYS = 90
const DELETE_STANDINGS = `DELETE FROM standings WHERE (agent_id, capital_mode, period, start, block) IN (
    SELECT agent_id, capital_mode, period, start, block FROM standings INDEXED BY standings_return
    WHERE period = 'day' AND start < ?1 AND block <= ?2 LIMIT ?3)`

/** Returns the start of the oldest day whose leaderboard is kept at a time; both in Unix seconds. */
export const oldestKeptDay = (timestamp: number): number =>
  timestamp - (timestamp % DAY_SECONDS) - KEPT_LEADERBOARD_DAYS * DAY_SECONDS

/** Returns statements that delete a page of final leaderboard entries of days that are no longer kept. */
export const deleteOldStandings = (
  db: D1Database,
  { timestamp, final }: Pick<IndexCursor, 'timestamp' | 'final'>,
): D1PreparedStatement[] => [db.prepare(DELETE_STANDINGS).bind(oldestKeptDay(timestamp), final, PAGE_SIZE)]
