import type { Hex } from 'viem'

/** The block up to which the index is complete, the head at that time, and the newest final block. */
export type IndexCursor = { block: number; hash: Hex; timestamp: number; head: number; final: number }

/** Returns a query for the cursor; `toCursor` reads its row. */
export const selectCursor = (db: Pick<D1Database, 'prepare'>): D1PreparedStatement =>
  db.prepare('SELECT scope, block, hash, timestamp, head, final FROM cursor')

/** Returns the cursor of a row; undefined if there is none, or if the index belongs to other contracts. */
export function toCursor(row: Record<string, unknown> | null | undefined, indexKey: string): IndexCursor | undefined {
  if (row?.scope !== indexKey) return undefined
  const { block, hash, timestamp, head, final } = row as IndexCursor
  return { block, hash, timestamp, head, final }
}

/** Returns a statement that sets the cursor. */
export const setCursor = (
  db: D1Database,
  indexKey: string,
  { block, hash, timestamp, head, final }: IndexCursor,
): D1PreparedStatement =>
  db
    .prepare(
      `INSERT INTO cursor (id, scope, block, hash, timestamp, head, final) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT (id) DO UPDATE SET block = ?2, hash = ?3, timestamp = ?4, head = ?5, final = ?6`,
    )
    .bind(indexKey, block, hash, timestamp, head, final)

/** Returns a statement that moves the cursor back to an ancestor. */
export const moveCursorBack = (
  db: D1Database,
  { block, hash, timestamp }: Pick<IndexCursor, 'block' | 'hash' | 'timestamp'>,
): D1PreparedStatement =>
  db
    .prepare('UPDATE cursor SET block = ?1, hash = ?2, timestamp = ?3, final = min(final, ?1) WHERE id = 1')
    .bind(block, hash, timestamp)
