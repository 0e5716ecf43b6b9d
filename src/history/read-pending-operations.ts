import type { Address, Hex } from 'viem'
import { readRows } from './tables/table.ts'

/**
 * Events of one timelock that are read. A thief who schedules more than this to hide one has been reported long before.
 */
const MAX_EVENTS = 2_000
const EVENTS = `SELECT name, json_extract(args, '$.id') AS id FROM events
  WHERE contract = ?1 AND name IN ('CallScheduled', 'CallExecuted', 'Cancelled')
  ORDER BY block DESC, log_index DESC LIMIT ${MAX_EVENTS}`

/**
 * Reads the ids of a timelock's operations that are scheduled and neither executed nor cancelled, oldest first. An
 * operation that was cancelled may be scheduled again, so its last event decides. Throws the database's error.
 */
export async function readPendingOperations(db: D1Database, timelock: Address): Promise<Hex[]> {
  const newestFirst = await readRows<{ name: string; id: Hex }>(db, EVENTS, timelock)
  const isPending = new Map<Hex, boolean>()
  for (const { name, id } of newestFirst.toReversed()) isPending.set(id, name === 'CallScheduled')
  return [...isPending].flatMap(([id, isScheduled]) => (isScheduled ? [id] : []))
}
