import type { IndexCursor } from './tables/cursor.ts'

const DAY_SECONDS = 86_400
/** Every posted price is kept this long. Samples and track records only use the last one of each hour. */
const KEPT_SECONDS = 90 * DAY_SECONDS
/** Prices per page. Twenty tokens with a price per minute post 300 in a quarter of an hour. */
const PAGE_SIZE = 5_000

/** The last block of the next page; NULL while all of its prices are kept. */
const PAGE_END = `SELECT max(block) AS block FROM (
    SELECT block, timestamp FROM prices INDEXED BY prices_block
    WHERE block > (SELECT prices_thinned_to FROM sampling) AND block <= ?1 ORDER BY block LIMIT ?3) WHERE timestamp < ?2`
/** Deletes the prices of the page whose next one is in the same hour. */
const DELETE_PAGE = `DELETE FROM prices WHERE (token, block, log_index) IN (
    SELECT token, block, log_index FROM prices AS old INDEXED BY prices_block
    WHERE block > (SELECT prices_thinned_to FROM sampling) AND block <= ?1 AND timestamp < ?2
      AND timestamp / 3600 = (SELECT next.timestamp / 3600 FROM prices AS next
        WHERE next.token = old.token AND (next.block, next.log_index) > (old.block, old.log_index)
        ORDER BY next.block, next.log_index LIMIT 1))`

/**
 * Returns statements that thin one page of the final prices of more than 90 days ago, from the oldest on: of each hour, only
 * a token's last price stays. They belong into one transaction.
 */
export async function thinOldPrices(
  db: D1Database,
  { timestamp, final }: Pick<IndexCursor, 'timestamp' | 'final'>,
): Promise<D1PreparedStatement[]> {
  const keptFrom = timestamp - (timestamp % DAY_SECONDS) - KEPT_SECONDS
  const end = await db.prepare(PAGE_END).bind(final, keptFrom, PAGE_SIZE).first<number>('block')
  if (end === null) return []
  return [
    db.prepare(DELETE_PAGE).bind(end, keptFrom),
    db.prepare('UPDATE sampling SET prices_thinned_to = ?1').bind(end),
  ]
}
