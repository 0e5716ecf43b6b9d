import type { Hex } from 'viem'
import type { Chain } from '../../chain/configured-chain.ts'
import type { Preparer, SqlRow } from './table.ts'

/**
 * Returns a key of an index's chain and permanent contracts. Rows under another key are useless. A router or an oracle
 * that is replaced leaves the index as it is, because the permanent contracts name both.
 */
export const indexKeyOf = ({ id, contracts, trading }: Chain): string =>
  [id, contracts.AgentRegistry, trading?.AllocationManager ?? '', trading?.PositionManager ?? ''].join(':')

/** Thrown if another writer moved the cursor. The caller starts again from the stored cursor. */
export class CursorMoved extends Error {
  override name = 'CursorMoved'
}

/**
 * Runs statements in one transaction that fails unless the cursor is at the block with this hash; undefined stands for
 * an empty index. Throws CursorMoved; then nothing was written.
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
export const selectCursor = (db: Preparer) =>
  db.prepare('SELECT scope, block, hash, timestamp, head, final FROM cursor')

/** Returns the cursor of a row; undefined if there is none, or if the index belongs to other contracts. */
export function toCursor(row: SqlRow | null | undefined, indexKey: string): IndexCursor | undefined {
  if (row?.scope !== indexKey) return undefined
  const { block, hash, timestamp, head, final } = row as IndexCursor
  return { block, hash, timestamp, head, final }
}

/** A block that rows belong to, or that the cursor stopped at. */
export type IndexedBlock = { number: number; hash: Hex }

/** Of the newest blocks all are kept; of older ones every other, whenever there are too many. */
const NEWEST_BLOCKS = 64
const MAX_BLOCKS = 256

/**
 * Returns the blocks that a reorg could still replace, newest first, with new ones. Final blocks are left out, except
 * the newest: every reorg branches off at it or above. An ancestor that is left out costs reading some blocks again.
 */
export function extendBranch(
  branch: readonly IndexedBlock[],
  blocks: readonly IndexedBlock[],
  final: number,
): IndexedBlock[] {
  const byNumber = new Map([...branch, ...blocks].map(block => [block.number, block]))
  const ordered = [...byNumber.values()].sort((one, other) => other.number - one.number)
  const newestFinal = ordered.findIndex(({ number }) => number <= final)
  const open = newestFinal < 0 ? ordered : ordered.slice(0, newestFinal + 1)
  if (open.length <= MAX_BLOCKS) return open
  const oldest = open.at(-1)
  return open.filter((block, index) => index < NEWEST_BLOCKS || index % 2 === 0 || block === oldest)
}

export const selectBranchHash = (db: Preparer, block: number) =>
  db.prepare('SELECT value ->> 1 AS hash FROM cursor, json_each(branch) WHERE value ->> 0 = ?1').bind(block)

/** Reads the blocks of the branch, newest first. */
export async function readBranch(db: D1Database): Promise<IndexedBlock[]> {
  const text = await db.prepare('SELECT branch FROM cursor').first<string>('branch')
  return (JSON.parse(text ?? '[]') as [number, Hex][]).map(([number, hash]) => ({ number, hash }))
}

const serializeBranch = (branch: readonly IndexedBlock[]) =>
  JSON.stringify(branch.map(({ number, hash }) => [number, hash]))

const SET_CURSOR = `INSERT INTO cursor (id, scope, block, hash, timestamp, head, final, branch)
  VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)
  ON CONFLICT (id) DO UPDATE SET block = ?2, hash = ?3, timestamp = ?4, head = ?5, final = ?6, branch = ?7`

export const setCursor = (
  db: D1Database,
  indexKey: string,
  { block, hash, timestamp, head, final }: IndexCursor,
  branch: readonly IndexedBlock[],
) => db.prepare(SET_CURSOR).bind(indexKey, block, hash, timestamp, head, final, serializeBranch(branch))

const MOVE_BACK = `UPDATE cursor SET block = ?1, hash = ?2, timestamp = ?3, final = min(final, ?1), branch = ?4 WHERE id = 1`

export const moveCursorBack = (
  db: D1Database,
  { block, hash, timestamp }: Pick<IndexCursor, 'block' | 'hash' | 'timestamp'>,
  branch: readonly IndexedBlock[],
) => db.prepare(MOVE_BACK).bind(block, hash, timestamp, serializeBranch(branch))

/** A reorg: the rows above `ancestor` were deleted. `lost` was the cursor; `at` is Unix seconds. */
export type Reorg = { ancestor: number; ancestorHash: Hex; lost: number; lostHash: Hex; at: number }

const MAX_REORGS = 1_000
/** How long after a reorg clients may still name its blocks. */
const REORG_MEMORY_SECONDS = 600

/**
 * Reads the lowest ancestor of the last reorgs that removed a block; undefined if none did, or the database is
 * unreachable.
 */
export async function readAncestorOf(db: D1Database, block: bigint): Promise<bigint | undefined> {
  const ancestor = await db
    .prepare('SELECT min(ancestor) AS ancestor FROM reorgs WHERE at >= ?1 AND ancestor < ?2 AND lost >= ?2')
    .bind(Math.floor(Date.now() / 1000) - REORG_MEMORY_SECONDS, Number(block))
    .first<number | null>('ancestor')
    .catch(() => null)
  return ancestor === null ? undefined : BigInt(ancestor)
}

/** Returns statements that add a reorg and delete the oldest ones. */
export const insertReorg = (db: D1Database, { ancestor, ancestorHash, lost, lostHash, at }: Reorg) => [
  db
    .prepare('INSERT INTO reorgs (ancestor, ancestor_hash, lost, lost_hash, at) VALUES (?1, ?2, ?3, ?4, ?5)')
    .bind(ancestor, ancestorHash, lost, lostHash, at),
  db.prepare(`DELETE FROM reorgs WHERE id <= (SELECT max(id) FROM reorgs) - ${MAX_REORGS}`),
]
