import type { Hex } from 'viem'
import { defineTable, type IndexTable } from './table.ts'

/** A block that rows belong to, or that the cursor stopped at. */
export type IndexedBlock = { number: number; hash: Hex }

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
