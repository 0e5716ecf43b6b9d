import type { Hex } from 'viem'
import type { Chain } from '../../chain/configured-chain.ts'
import { defineTable, type IndexTable } from './table.ts'

/** Returns a key of an index's chain and contracts. Rows under another key are useless. */
export const indexKeyOf = ({ id, contracts, trading }: Chain): string =>
  [id, contracts.AgentRegistry, trading?.TradeRouter ?? '', trading?.PositionManager ?? ''].join(':')

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

/** A block that rows belong to, or that the cursor stopped at. */
type IndexedBlock = { number: number; hash: Hex }

/** The blocks that a reorg could still replace. */
export const blocksTable: IndexTable<IndexedBlock> = {
  ...defineTable<IndexedBlock>('blocks', { number: block => block.number, hash: block => block.hash }),
  rollback: (db, block) => [db.prepare('DELETE FROM blocks WHERE number > ?1').bind(block)],
}

/** Returns a statement that deletes final blocks, except the newest one: every reorg branches off at it or above. */
export const deleteFinalBlocks = (db: D1Database, final: number): D1PreparedStatement =>
  db.prepare('DELETE FROM blocks WHERE number < (SELECT max(number) FROM blocks WHERE number <= ?1)').bind(final)

/** Reads the blocks that a reorg could still replace, newest first. */
export async function readBlocks(db: D1Database): Promise<IndexedBlock[]> {
  const { results } = await db.prepare('SELECT number, hash FROM blocks ORDER BY number DESC').all<IndexedBlock>()
  return results
}

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
