import type { Candle } from '@agent-trading-service/protocol/candles'
import type { Address } from 'viem'
import type { IndexCursor } from './cursor.ts'

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400
/** The lengths of the candles that are stored, for ever. Others are made from them, or from the posts of 90 days. */
export type StoredSeconds = typeof HOUR_SECONDS | typeof DAY_SECONDS
/** Posts per transaction. Twenty tokens with a post per minute have as many in four hours. */
const PAGE_SIZE = 5_000

// Prices are digits of any length. With zeros in front, the order of texts is the order of numbers; with the place of the
// post in front, the least text is the first post and the greatest the last one.
const ZEROS = '0'.repeat(78)
const padded = `substr('${ZEROS}' || price, -78)`
const placed = `printf('%012d%07d', block, log_index) || price`
const PLACE_LENGTH = 19

/** The columns of candles of `prices`, grouped by token and `start`. */
const POST_COLUMNS = `substr(min(${placed}), ${PLACE_LENGTH + 1}) AS open, ltrim(max(${padded}), '0') AS high,
  ltrim(min(${padded}), '0') AS low, substr(max(${placed}), ${PLACE_LENGTH + 1}) AS close, count(*) AS posts`

/** Adds posts of later blocks to the candles of hours and days that they belong to. */
const ROLL_UP = `INSERT INTO candles (token, seconds, start, open, high, low, close, posts, last_block)
  SELECT token, value, timestamp / value * value AS start, ${POST_COLUMNS}, max(block)
  FROM json_each('[${HOUR_SECONDS},${DAY_SECONDS}]') CROSS JOIN prices INDEXED BY prices_block
  WHERE block > ?1 AND block <= ?2 GROUP BY token, value, start
  ON CONFLICT (token, seconds, start) DO UPDATE SET
    high = CASE WHEN (length(excluded.high), excluded.high) > (length(high), high) THEN excluded.high ELSE high END,
    low = CASE WHEN (length(excluded.low), excluded.low) < (length(low), low) THEN excluded.low ELSE low END,
    close = excluded.close, posts = posts + excluded.posts, last_block = excluded.last_block`
/** The last block of the next page of final posts; the newest final block if fewer are left. */
const PAGE_END = `SELECT coalesce((SELECT block FROM prices INDEXED BY prices_block
    WHERE block > candles_to AND block <= ?1 ORDER BY block LIMIT 1 OFFSET ${PAGE_SIZE}), ?1) AS block,
  candles_to AS done FROM cursor`

/**
 * Returns statements that add a page of final posts to the stored candles; none if all are in them. Run them in a transaction
 * that fails if the cursor has moved, so that each post is added once.
 */
export async function rollUpCandles(db: D1Database, { final }: Pick<IndexCursor, 'final'>) {
  const page = await db.prepare(PAGE_END).bind(final).first<{ block: number; done: number }>()
  if (page === null || page.block <= page.done) return []
  return [
    db.prepare(ROLL_UP).bind(page.done, page.block),
    db.prepare('UPDATE cursor SET candles_to = ?1').bind(page.block),
  ]
}

/** A range of candles of a token; times are Unix seconds. */
type CandleRange = { token: Address; from: number; to: number }

/** Returns a query for the stored candles that start in a range, oldest first. */
export const selectStoredCandles = (
  db: Pick<D1Database, 'prepare'>,
  { token, from, to }: CandleRange,
  seconds: StoredSeconds,
): D1PreparedStatement =>
  db
    .prepare(
      `SELECT start, open, high, low, close, posts FROM candles
      WHERE token = ?1 AND seconds = ?2 AND start >= ?3 AND start <= ?4 ORDER BY start`,
    )
    .bind(token, seconds, from, to)

/** The last block of the hours before the one that has a time, and of the first hour after it. No post between is outside. */
const blockBefore = (token: string, time: string) => `coalesce((SELECT last_block FROM candles
  WHERE token = ${token} AND seconds = ${HOUR_SECONDS} AND start < ${time} / ${HOUR_SECONDS} * ${HOUR_SECONDS}
  ORDER BY start DESC LIMIT 1), -1)`
const blockAfter = (token: string, time: string) => `coalesce((SELECT last_block FROM candles
  WHERE token = ${token} AND seconds = ${HOUR_SECONDS} AND start > ${time} ORDER BY start LIMIT 1), ${Number.MAX_SAFE_INTEGER})`

/**
 * Returns a query for the candles of the posts in a range, by intervals of `seconds` since the epoch, oldest first; with
 * `isNotStored` only of posts that are not in the stored candles yet.
 */
export const selectCandlesOfPosts = (
  db: Pick<D1Database, 'prepare'>,
  { token, from, to }: CandleRange,
  seconds: number,
  isNotStored: boolean,
): D1PreparedStatement =>
  db
    .prepare(
      `SELECT timestamp / ?2 * ?2 AS start, ${POST_COLUMNS} FROM prices
      WHERE token = ?1 AND block > ${isNotStored ? '(SELECT candles_to FROM cursor)' : blockBefore('?1', '?3')}
        AND block <= ${blockAfter('?1', '?4')} AND timestamp >= ?3 AND timestamp <= ?4
      GROUP BY start ORDER BY start`,
    )
    .bind(token, seconds, from, to)

/** The last price of a token at a time; NULL before the first post. */
const priceAt = (token: string, time: string) => `coalesce(
    (SELECT price FROM prices WHERE token = ${token} AND block > ${blockBefore(token, time)}
      AND block <= ${blockAfter(token, time)} AND timestamp <= ${time} ORDER BY block DESC, log_index DESC LIMIT 1),
    (SELECT close FROM candles WHERE token = ${token} AND seconds = ${HOUR_SECONDS}
      AND start < ${time} / ${HOUR_SECONDS} * ${HOUR_SECONDS} ORDER BY start DESC LIMIT 1))`

/** A token and a time in Unix seconds. */
export type PricedAt = { token: Address; time: number }

/** Returns a query for the last price of tokens at times, in their order; null before the first post. */
export const selectPricesAt = (db: Pick<D1Database, 'prepare'>, moments: readonly PricedAt[]): D1PreparedStatement =>
  db
    .prepare(`SELECT ${priceAt('(value ->> 0)', '(value ->> 1)')} AS price FROM json_each(?1) ORDER BY json_each.key`)
    .bind(JSON.stringify(moments.map(({ token, time }) => [token, time])))

/** Returns the price of a row of `selectPricesAt`; undefined before the first post. */
export const toPrice = (row: Record<string, unknown> | undefined): bigint | undefined =>
  typeof row?.price === 'string' ? BigInt(row.price) : undefined

/** Returns the candle of a row. */
export function toCandle(row: Record<string, unknown>): Candle {
  const { start, open, high, low, close, posts } = row as Record<'open' | 'high' | 'low' | 'close', string> &
    Record<'start' | 'posts', number>
  return { start, open: BigInt(open), high: BigInt(high), low: BigInt(low), close: BigInt(close), posts }
}
