import type { Candle } from '@agent-trading-service/protocol/candles'
import type { Address } from 'viem'
import type { Chain } from '../../chain/configured-chain.ts'
import { readDecimals } from '../../chain/token-decimals.ts'
import { batchesOf } from '../../concurrency.ts'
import type { IndexCursor } from './cursor.ts'
import { type Preparer, readBatch, readRows, type SqlRow } from './table.ts'

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400
/** The lengths of the candles that are stored, for ever. Others are made from them, or from the posts of 90 days. */
type StoredSeconds = typeof HOUR_SECONDS | typeof DAY_SECONDS
/** Posts per transaction. Twenty tokens with a post per minute have as many in four hours. */
const PAGE_SIZE = 5_000

// D1 binds numbers as reals, whose division does not round down. So parameters that are divided are cast.

// Prices are digits of any length. With zeros in front, the order of texts is the order of numbers; with the place of
// the post in front, the least text is the first post and the greatest the last one.
const ZEROS = '0'.repeat(78)
const padded = `substr('${ZEROS}' || price, -78)`
const placed = `printf('%012d%07d', block, log_index) || price`
const PLACE_LENGTH = 19

/** The columns of candles of `prices`, grouped by token and `start`. */
const POST_COLUMNS = `substr(min(${placed}), ${PLACE_LENGTH + 1}) AS open, ltrim(max(${padded}), '0') AS high,
  ltrim(min(${padded}), '0') AS low, substr(max(${placed}), ${PLACE_LENGTH + 1}) AS close, count(*) AS posts`
/** When the last of them was observed. */
const OBSERVED_AT = `CAST(substr(max(printf('%012d%07d', block, log_index) || observed_at), ${PLACE_LENGTH + 1}) AS INTEGER)`

/** Adds posts of later blocks to the candles of hours and days that they belong to. */
const ROLL_UP = `INSERT INTO candles (token, seconds, start, open, high, low, close, posts, last_block, observed_at)
  SELECT token, value, timestamp / value * value AS start, ${POST_COLUMNS}, max(block), ${OBSERVED_AT}
  FROM json_each('[${HOUR_SECONDS},${DAY_SECONDS}]') CROSS JOIN prices INDEXED BY prices_block
  WHERE block > ?1 AND block <= ?2 GROUP BY token, value, start
  ON CONFLICT (token, seconds, start) DO UPDATE SET
    high = CASE WHEN (length(excluded.high), excluded.high) > (length(high), high) THEN excluded.high ELSE high END,
    low = CASE WHEN (length(excluded.low), excluded.low) < (length(low), low) THEN excluded.low ELSE low END,
    close = excluded.close, posts = posts + excluded.posts, last_block = excluded.last_block,
    observed_at = excluded.observed_at`
/** The last block of the next page of final posts; the newest final block if fewer are left. */
const PAGE_END = `SELECT coalesce((SELECT block FROM prices INDEXED BY prices_block
    WHERE block > candles_to AND block <= ?1 ORDER BY block LIMIT 1 OFFSET ${PAGE_SIZE}), ?1) AS block,
  candles_to AS done FROM cursor`

/**
 * Returns statements that add a page of final posts to the stored candles; none if all are in them. Run them in a
 * transaction that fails if the cursor has moved, so that each post is added once.
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

const STORED = `SELECT start, open, high, low, close, posts FROM candles
  WHERE token = ?1 AND seconds = ?2 AND start >= ?3 AND start <= ?4 ORDER BY start`

/** Returns a query for the stored candles that start in a range, oldest first. */
export const selectStoredCandles = (db: Preparer, { token, from, to }: CandleRange, seconds: StoredSeconds) =>
  db.prepare(STORED).bind(token, seconds, from, to)

/**
 * The last block of the hours before the one that has a time, and of the first hour after it. No post between is
 * outside.
 */
const blockBefore = (token: string, time: string) => `coalesce((SELECT last_block FROM candles
  WHERE token = ${token} AND seconds = ${HOUR_SECONDS} AND start < CAST(${time} AS INTEGER) / ${HOUR_SECONDS} * ${HOUR_SECONDS}
  ORDER BY start DESC LIMIT 1), -1)`
const blockAfter = (token: string, time: string) => `coalesce((SELECT last_block FROM candles
  WHERE token = ${token} AND seconds = ${HOUR_SECONDS} AND start > ${time} ORDER BY start LIMIT 1), ${Number.MAX_SAFE_INTEGER})`

/**
 * Returns a query for the candles of the posts in a range, by intervals of `seconds` since the epoch, oldest first;
 * with `isNotStored` only of posts that are not in the stored candles yet.
 */
export const selectCandlesOfPosts = (
  db: Preparer,
  { token, from, to }: CandleRange,
  seconds: number,
  isNotStored: boolean,
) =>
  db
    .prepare(
      `SELECT timestamp / CAST(?2 AS INTEGER) * CAST(?2 AS INTEGER) AS start, ${POST_COLUMNS} FROM prices
      WHERE token = ?1 AND block > ${isNotStored ? '(SELECT candles_to FROM cursor)' : blockBefore('?1', '?3')}
        AND block <= ${blockAfter('?1', '?4')} AND timestamp >= ?3 AND timestamp <= ?4
      GROUP BY start ORDER BY start`,
    )
    .bind(token, seconds, from, to)

/**
 * The last price of a token at a time, with the time of its observation and its block as JSON; NULL before the first
 * post. Of times before the kept posts, only the last second of an hour is exact.
 */
const priceAt = (token: string, time: string) => `coalesce(
    (SELECT json_array(price, observed_at, block) FROM prices WHERE token = ${token}
      AND block > ${blockBefore(token, time)} AND block <= ${blockAfter(token, time)} AND timestamp <= ${time}
      ORDER BY block DESC, log_index DESC LIMIT 1),
    (SELECT json_array(close, observed_at, last_block) FROM candles WHERE token = ${token} AND seconds = ${HOUR_SECONDS}
      AND start <= ${time} - ${HOUR_SECONDS - 1} ORDER BY start DESC LIMIT 1))`

/** A token and a time in Unix seconds. */
type PricedAt = { token: Address; time: number }

/** A posted price (8 decimals), when it was observed in Unix seconds, and its block. */
export type PriceAt = { price: bigint; observedAt: number; block: number }

const PRICES_AT = `SELECT ${priceAt('(value ->> 0)', '(value ->> 1)')} AS found FROM json_each(?1) ORDER BY json_each.key`

/** Returns a query for the last price of tokens at times, in their order; null before the first post. */
export const selectPricesAt = (db: Preparer, moments: readonly PricedAt[]) =>
  db.prepare(PRICES_AT).bind(JSON.stringify(moments.map(({ token, time }) => [token, time])))

/** Returns the price of a row of `selectPricesAt`; undefined before the first post. */
export function toPriceAt(row: SqlRow | undefined): PriceAt | undefined {
  if (typeof row?.found !== 'string') return undefined
  const [price, observedAt, block] = JSON.parse(row.found) as [string, number, number]
  return { price: BigInt(price), observedAt, block }
}

/**
 * The last price of a token (`value`) that was posted before block ?2: of the kept posts, or of the candles that have
 * older ones.
 */
const PRICES_BEFORE = `SELECT value AS token, coalesce(
    (SELECT price FROM prices WHERE token = value AND block < ?2 ORDER BY block DESC, log_index DESC LIMIT 1),
    (SELECT close FROM candles WHERE token = value AND seconds = ${HOUR_SECONDS} AND last_block < ?2 ORDER BY start DESC LIMIT 1)
  ) AS price FROM json_each(?1)`

/** Reads the last price of each token that was posted before a block. Tokens without one are left out. */
export async function readPricesBefore(
  db: D1Database,
  tokens: readonly Address[],
  block: number,
): Promise<Map<Address, bigint>> {
  type Row = { token: Address; price: string | null }
  const rows = await readRows<Row>(db, PRICES_BEFORE, JSON.stringify(tokens), block)
  return new Map(rows.flatMap(({ token, price }) => (price === null ? [] : [[token, BigInt(price)]])))
}

/** Prices per query. */
const MOMENTS_PER_QUERY = 2_000

/** Reads the last price of tokens at times. The returned function finds each; undefined before the first post. */
export async function readPricesAt(
  db: Pick<D1Database, 'prepare' | 'batch'>,
  moments: readonly PricedAt[],
): Promise<(token: Address, time: number) => PriceAt | undefined> {
  const byKey = new Map(moments.map(moment => [`${moment.token} ${moment.time}`, moment]))
  const queries = batchesOf([...byKey.values()], MOMENTS_PER_QUERY).map(page => selectPricesAt(db, page))
  const prices = (await readBatch(db, queries)).flat().map(toPriceAt)
  const priceOf = new Map([...byKey.keys()].map((key, index) => [key, prices[index]]))
  return (token, time) => priceOf.get(`${token} ${time}`)
}

/** Reads the last prices of the tokens that books hold at their times, and the decimals of these tokens. */
export async function readHeldPrices(
  db: D1Database,
  chain: Chain,
  states: readonly { time: number; book: { holdings: object } }[],
) {
  const held = states.flatMap(({ time, book }) =>
    (Object.keys(book.holdings) as Address[]).map(token => ({ token, time })),
  )
  const tokens = held.map(({ token }) => token)
  const [priceAt, decimalsOf] = await Promise.all([readPricesAt(db, held), readDecimals(chain, tokens)])
  return { priceAt, decimalsOf }
}

/**
 * Returns statements that take posts above a block out of the candles. Final posts are only withdrawn when the index
 * lacked some of them: the candles from that day on are then made again from the posts.
 */
export const rollbackCandles = (db: D1Database, block: number): D1PreparedStatement[] =>
  [
    `DELETE FROM candles WHERE (SELECT candles_to FROM cursor) > ?1
      AND start >= (SELECT min(start) FROM candles WHERE last_block > ?1)`,
    'UPDATE cursor SET candles_to = coalesce((SELECT max(last_block) FROM candles), -1) WHERE candles_to > ?1',
  ].map(sql => db.prepare(sql).bind(block))

export function toCandle(row: SqlRow): Candle {
  const { start, open, high, low, close, posts } = row as Record<'open' | 'high' | 'low' | 'close', string> &
    Record<'start' | 'posts', number>
  return { start, open: BigInt(open), high: BigInt(high), low: BigInt(low), close: BigInt(close), posts }
}
