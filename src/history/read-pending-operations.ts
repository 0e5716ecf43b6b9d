import type { Address, Hex } from 'viem'

/**
 * Events of one timelock that are read. A thief who schedules more than this to hide one has been reported long before.
 */
const MAX_EVENTS = 2_000

/**
 * Reads the ids of a timelock's operations that are scheduled and neither executed nor cancelled, oldest first. An
 * operation that was cancelled may be scheduled again, so its last event decides. Throws the database's error.
 */
export async function readPendingOperations(db: D1Database, timelock: Address): Promise<Hex[]> {
  const { results } = await db
    .prepare(
      `SELECT name, json_extract(args, '$.id') AS id FROM events
      WHERE contract = ?1 AND name IN ('CallScheduled', 'CallExecuted', 'Cancelled')
      ORDER BY block DESC, log_index DESC LIMIT ${MAX_EVENTS}`,
    )
    .bind(timelock)
    .all<{ name: string; id: Hex }>()
  const isPending = new Map<Hex, boolean>()
  for (const { name, id } of results.toReversed()) isPending.set(id, name === 'CallScheduled')
  return [...isPending].flatMap(([id, isScheduled]) => (isScheduled ? [id] : []))
}
