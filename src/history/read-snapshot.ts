import type { Block, Chain } from '../chain/configured-chain.ts'
import { sleep } from '../concurrency.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { logEvent } from '../log.ts'
import { type IndexCursor, indexKeyOf, selectCursor, toCursor } from './tables/cursor.ts'
import type { SqlRow } from './tables/table.ts'

/** Returns the queries of a read. They run in one transaction with the query for the cursor. */
type Queries = (db: D1DatabaseSession) => D1PreparedStatement[]

/** What the index had at its cursor. */
export type Snapshot = { results: SqlRow[][]; cursor: IndexCursor; facts: SnapshotFacts }

/** What every read says of its snapshot. */
export type SnapshotFacts = {
  /** The cursor's block, up to which the results are complete, and how many blocks the caller has seen after it. */
  asOf: Block
  lagBlocks: number
  /** How many rows of the index it read. */
  rowsRead: number
}

export type SnapshotReader = ReturnType<typeof createSnapshotReader>

/** An index that lacks more blocks than this, and more time, is still being built, and no read waits for it. */
const MAX_BLOCKS_TO_CATCH_UP = 2_000
const MAX_SECONDS_TO_CATCH_UP = 600
const MAX_ATTEMPTS = 3
const RETRY_PAUSE_MS = 50

/**
 * Creates a reader of the index. `catchUp` makes the indexer read the chain up to a block if it has not reached it;
 * without a block, up to the head, after it has rolled back what the chain no longer has.
 */
export function createSnapshotReader(db: D1Database, chain: Chain, catchUp: (block?: number) => Promise<unknown>) {
  const indexKey = indexKeyOf(chain)

  /**
   * Reads the index as of at least `newest`, the block that the caller has read: an index that is behind it, or that
   * may be on another branch, catches up first. If the nodes do not get it there in time, the snapshot ends at an
   * earlier block. Throws HISTORY_UNAVAILABLE, and what `newest` rejects with.
   */
  async function readSnapshot(newest: Block | Promise<Block>, queries: Queries): Promise<Snapshot> {
    const [found, head] = await Promise.all([readIndex(queries), newest])
    const gap = found === undefined ? 0 : Number(head.number) - found.cursor.block
    const seconds = found === undefined ? 0 : Number(head.timestamp) - found.cursor.timestamp
    const isBeingBuilt = gap > MAX_BLOCKS_TO_CATCH_UP && seconds > MAX_SECONDS_TO_CATCH_UP
    if (found && (isBeingBuilt || isAsOf(head, found.cursor))) return describe(found, head)
    const isBehind = gap > 0
    let failure: unknown
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const hasCaughtUp = await catchUp(isBehind ? Number(head.number) : undefined).then(
        () => true,
        error => {
          failure = error
          return false
        },
      )
      const current = await readIndex(queries, 'first-primary') // a replica may lack what was just written
      if (current && (hasCaughtUp || isBehind)) return describe(current, head)
      await sleep(RETRY_PAUSE_MS * attempt)
    }
    throw refuse('HISTORY_UNAVAILABLE', {}, { cause: failure ?? new Error('the index is empty') })
  }

  /** Reads cursor and results in one transaction; undefined if there is no index of these contracts yet. */
  async function readIndex(
    queries: Queries,
    constraint: D1SessionConstraint = 'first-unconstrained',
  ): Promise<IndexedPart | undefined> {
    const session = db.withSession(constraint)
    try {
      const statements = [selectCursor(session), ...queries(session)]
      const [cursors, ...found] = await session.batch<SqlRow>(statements)
      const cursor = toCursor(cursors?.results[0], indexKey)
      return cursor && { cursor, results: found.map(({ results }) => results), rowsRead: rowsReadBy(found) }
    } catch (error) {
      logReadFailure(error)
      return undefined
    }
  }

  /** Returns the cursor; undefined if there is no index of these contracts, or the database is unreachable. */
  const readIndexCursor = async (): Promise<IndexCursor | undefined> => (await readIndex(() => []))?.cursor

  return { readSnapshot, readIndex, readIndexCursor }
}

type IndexedPart = Pick<Snapshot, 'cursor' | 'results'> & Pick<SnapshotFacts, 'rowsRead'>

/**
 * Whether the index is known to be as of the caller's newest block without a request to a node. A cursor above it means
 * that the caller's node lags, or that the index has not followed a reorg yet; so does another time of the same block.
 */
const isAsOf = ({ number, timestamp }: Block, cursor: IndexCursor): boolean =>
  BigInt(cursor.block) === number && BigInt(cursor.timestamp) === timestamp

function describe({ cursor, results, rowsRead }: IndexedPart, head: Block): Snapshot {
  const asOf = { number: BigInt(cursor.block), timestamp: BigInt(cursor.timestamp) }
  const lagBlocks = Math.max(0, Number(head.number) - cursor.block)
  return { results, cursor, facts: { asOf, lagBlocks, rowsRead } }
}

export const rowsReadBy = (results: readonly Pick<D1Result, 'meta'>[]): number =>
  results.reduce((sum, { meta }) => sum + meta.rows_read, 0)

/** Counts the reorgs that the index has followed. */
const COUNT_REORGS = 'SELECT coalesce(max(id), 0) AS reorgs FROM reorgs'

/**
 * Runs several queries that are no transaction, again if a reorg changed the index meanwhile. Throws
 * HISTORY_UNAVAILABLE.
 */
export async function onOneBranch<Result>(
  db: Pick<D1Database, 'prepare'>,
  read: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const before = await db.prepare(COUNT_REORGS).first<number>('reorgs')
    const result = await read()
    if ((await db.prepare(COUNT_REORGS).first<number>('reorgs')) === before) return result
  }
  throw refuse('HISTORY_UNAVAILABLE')
}

/** Logs that the database cannot be read. Missing tables are normal: the indexer creates them when it first starts. */
function logReadFailure(error: unknown) {
  const message = error instanceof Error ? error.message : ''
  if (!/no such table/.test(message)) logEvent('history unreadable')
}

/** Handles rejections of optional results: returns undefined for HISTORY_UNAVAILABLE and rethrows other errors. */
export const undefinedIfUnavailable = (error: unknown): undefined => {
  if (!(error instanceof Refusal && error.body.code === 'HISTORY_UNAVAILABLE')) throw error
}
