import type { Hex } from 'viem'

/** Thrown if another writer moved the cursor. The caller starts again from the stored cursor. */
export class CursorMoved extends Error {
  override name = 'CursorMoved'
}

/**
 * Runs statements in one transaction that fails unless the cursor is at the block with this hash; undefined stands for an
 * empty index. Throws CursorMoved; then nothing was written.
 */
export async function commitAtCursor(
  db: D1Database,
  hash: Hex | undefined,
  statements: readonly D1PreparedStatement[],
): Promise<void> {
  // D1 transactions cannot branch, but a statement that parses invalid JSON aborts them; random() keeps SQLite from
  // evaluating it while it prepares the statement.
  const check = db
    .prepare(
      `SELECT CASE WHEN (SELECT hash FROM cursor WHERE id = 1) IS ?1 THEN 1 ELSE json('the cursor moved ' || random()) END`,
    )
    .bind(hash ?? null)
  try {
    await db.batch([check, ...statements])
  } catch (error) {
    if (error instanceof Error && /malformed JSON/i.test(error.message)) throw new CursorMoved()
    throw error
  }
}
