import type { Hex } from 'viem'

/** A reorg: the rows above `ancestor` were deleted. `lost` was the cursor; `at` is Unix seconds. */
export type Reorg = { ancestor: number; ancestorHash: Hex; lost: number; lostHash: Hex; at: number }

const MAX_REORGS = 1_000

/** Returns statements that add a reorg and delete the oldest ones. */
export const insertReorg = (db: D1Database, { ancestor, ancestorHash, lost, lostHash, at }: Reorg) => [
  db
    .prepare('INSERT INTO reorgs (ancestor, ancestor_hash, lost, lost_hash, at) VALUES (?1, ?2, ?3, ?4, ?5)')
    .bind(ancestor, ancestorHash, lost, lostHash, at),
  db.prepare(`DELETE FROM reorgs WHERE id <= (SELECT max(id) FROM reorgs) - ${MAX_REORGS}`),
]
