import type { IndexCursor } from './tables/cursor.ts'

const DAY_SECONDS = 86_400
/** Hourly samples are kept this long: more than twice the longest hourly range that can be read. */
const HOURLY_SECONDS = 90 * DAY_SECONDS
/** Samples per page. With 10,000 agents, 2,500 samples become old per quarter of an hour. */
const PAGE_SIZE = 5_000

/** The last block of the next page; NULL while its samples are still kept by the hour. */
const PAGE_END = `SELECT max(block) AS block FROM (
    SELECT block, timestamp FROM equity INDEXED BY equity_block
    WHERE block > (SELECT thinned_to FROM sampling) ORDER BY block LIMIT ?2) WHERE timestamp < ?1`
/** Deletes the samples of the page that are not the last ones of their agents' days. */
const DELETE_PAGE = `DELETE FROM equity WHERE (agent_id, timestamp, block) IN (
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
  const end = await db.prepare(PAGE_END).bind(keptFrom, PAGE_SIZE).first<number>('block')
  if (end === null) return []
  return [db.prepare(DELETE_PAGE).bind(end, keptFrom), db.prepare('UPDATE sampling SET thinned_to = ?1').bind(end)]
}
