import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import type { SamplePrice } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'

/**
 * The last price of each hour and token in a range of blocks. The other columns come from the row with the maximum.
 */
const LAST_PRICE_PER_HOUR = `SELECT token, timestamp, price, observed_at, max(block * 1000000 + log_index) FROM prices
  WHERE token IN (SELECT value FROM json_each(?1)) AND block > ?2 AND block <= ?3
  GROUP BY token, timestamp / 3600 ORDER BY timestamp`
const LAST_PRICE_BEFORE = `SELECT prices.token, timestamp, price, observed_at FROM json_each(?1) CROSS JOIN prices
  ON prices.token = value AND (block, log_index) = (
    SELECT block, log_index FROM prices WHERE token = value AND block <= ?2 ORDER BY block DESC, log_index DESC LIMIT 1)`

type PriceRow = { token: Address; timestamp: number; price: string; observed_at: number }

/**
 * Reads the prices of tokens in a range of blocks. The returned function finds the last price at the end of an hour, or
 * at the last block.
 */
export async function readPriceHistory(
  db: D1Database,
  tokens: readonly Address[],
  { from, to }: { from: number; to: number },
): Promise<(token: Address, time: number) => SamplePrice | undefined> {
  const json = JSON.stringify(tokens)
  const [before, later] = await db.batch<PriceRow>([
    db.prepare(LAST_PRICE_BEFORE).bind(json, from),
    db.prepare(LAST_PRICE_PER_HOUR).bind(json, from, to),
  ])
  const rows = [...(before?.results ?? []), ...(later?.results ?? [])]
  const byToken = Map.groupBy(rows, ({ token }) => token)
  return (token, time) => {
    const found = lastAtOrBefore(byToken.get(token) ?? [], time)
    return found && { price: BigInt(found.price), observedAt: found.observed_at }
  }
}

const CAPS = `SELECT agent_id, coalesce(args ->> 'newCap', args ->> 'cap') AS cap, timestamp FROM events
  WHERE agent_id IN (SELECT value FROM json_each(?1)) AND name IN ('AllocationCreated', 'AllocationCapUpdated')
    AND block <= ?2
  ORDER BY block, log_index`

/** Reads the allocation caps of agents over time. The returned function finds the last cap above 0. */
export async function readCapHistory(
  db: D1Database,
  agentIds: readonly number[],
  upToBlock: number,
): Promise<(agentId: number, time: number) => bigint> {
  const { results } = await db
    .prepare(CAPS)
    .bind(JSON.stringify(agentIds), upToBlock)
    .all<{ agent_id: number; cap: string; timestamp: number }>()
  const positive = results.filter(({ cap }) => cap !== '0')
  const byAgent = Map.groupBy(positive, ({ agent_id }) => agent_id)
  return (agentId, time) => BigInt(lastAtOrBefore(byAgent.get(agentId) ?? [], time)?.cap ?? 0)
}
