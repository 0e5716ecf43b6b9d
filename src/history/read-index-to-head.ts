import type { Block, Chain } from '../chain/configured-chain.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { logEvent } from '../log.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { readProvedLogs } from '../rpc/proved-logs.ts'
import { blockRequest, type LogFilter, type NodeLog, toHeader } from '../rpc/requests.ts'
import type { IndexerStatus } from './chain-follower.ts'
import { type IndexCursor, indexKeyOf, selectCursor, toCursor } from './tables/cursor.ts'

/** What to read from the index, and the logs that complete it up to the head. */
export type SnapshotQuery = {
  /** Returns the queries. They run in one transaction with the query for the cursor. */
  queries: (db: D1DatabaseSession) => D1PreparedStatement[]
  /** The node's newest block, from the caller's own read. */
  head: Promise<Block>
  /** Selects the logs above the cursor that change the result; it may follow from what the index has. */
  filter: LogFilter | ((indexed: IndexedPart) => LogFilter)
  /** Only older blocks matter: no logs are read if the cursor is at or above this block. */
  until?: bigint | undefined
}

/** A consistent state of index and chain: both are on one branch. */
export type Snapshot = {
  results: D1Result<Record<string, unknown>>[]
  /** The block up to which the index contributed `results`. */
  cursor: IndexCursor
  /** The logs above the cursor, oldest first; none if the snapshot ends at the cursor. */
  logs: NodeLog[]
  /** The block that the snapshot describes, and its distance to the head in blocks. */
  asOf: Block
  lagBlocks: number
  /** How many rows of the index it read. */
  rowsRead: number
}

/** What every read says of its snapshot. */
export type SnapshotFacts = Pick<Snapshot, 'asOf' | 'lagBlocks' | 'rowsRead'>

/** The part of a snapshot that comes from the index. */
type IndexedPart = Pick<Snapshot, 'cursor' | 'results' | 'rowsRead'>

export type SnapshotReader = ReturnType<typeof createSnapshotReader>

/** If the index lacks more blocks than this, a snapshot ends at the cursor instead of the head. */
export const MAX_GAP_BLOCKS = 256
/** If it lacks more blocks than this, the indexer is made to read them first, once for all readers. */
const MAX_OWN_BLOCKS = 64
/** If it lacks more blocks than this, it is still far from the head, and no read waits for it. */
const MAX_BLOCKS_TO_CATCH_UP = 2_000
/** How long nodes get to learn of the newest block, which another node has. */
const LAGGING_NODE_MS = 1_500
const MAX_ATTEMPTS = 4
const RETRY_PAUSE_MS = 50

/** Creates a reader of the index, completed from the chain. `catchUp` makes the indexer read the chain at once. */
export function createSnapshotReader({
  db,
  chain,
  catchUp,
}: {
  db: D1Database
  chain: Chain
  catchUp: () => Promise<IndexerStatus>
}) {
  const indexKey = indexKeyOf(chain)

  /**
   * Reads a snapshot. If the chain no longer has the cursor's block, the indexer is made to roll back first. Throws
   * HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
   */
  async function readSnapshot(query: SnapshotQuery): Promise<Snapshot> {
    let failure: unknown
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const [found, callersHead] = await Promise.all([readIndex(query), query.head])
      const head = attempt === 1 ? Number(callersHead.number) : await readHead()
      const indexed = found && attempt === 1 ? await readNearHead(found, head, query) : found
      const snapshot = indexed && (await completeFromChain(indexed, head, query))
      if (snapshot) return snapshot
      failure = await catchUp().then(
        () => new Error('the index is empty, or on another branch than the node'),
        error => error,
      )
      if (attempt > 1) await scheduler.wait(RETRY_PAUSE_MS * attempt) // a reorg is in progress, or the node is behind
    }
    throw refuse('HISTORY_UNAVAILABLE', {}, { cause: failure })
  }

  /** Reads cursor and results in one transaction; undefined if there is no index of these contracts yet. */
  async function readIndex({ queries }: Pick<SnapshotQuery, 'queries'>): Promise<IndexedPart | undefined> {
    // Any replica will do: the gap is computed from its own cursor.
    const session = db.withSession('first-unconstrained')
    try {
      const statements = [selectCursor(session), ...queries(session)]
      const [cursors, ...results] = await session.batch<Record<string, unknown>>(statements)
      const cursor = toCursor(cursors?.results[0], indexKey)
      return cursor && { cursor, results, rowsRead: rowsReadBy(results) }
    } catch (error) {
      logReadFailure(error)
      return undefined
    }
  }

  /** Makes the indexer catch up if it was idle, and reads again. */
  async function readNearHead(
    indexed: IndexedPart,
    head: number,
    query: SnapshotQuery,
  ): Promise<IndexedPart | undefined> {
    const gap = head - indexed.cursor.block
    if (gap <= MAX_OWN_BLOCKS || gap > MAX_BLOCKS_TO_CATCH_UP) return indexed
    await catchUp().catch(() => {}) // then the snapshot ends where the index does
    return readIndex(query)
  }

  /** Adds the logs above the cursor; undefined if the index is on another branch than the node. */
  async function completeFromChain(
    indexed: IndexedPart,
    head: number,
    { filter, until }: SnapshotQuery,
  ): Promise<Snapshot | undefined> {
    const { cursor } = indexed
    const canClose = head > cursor.block && head - cursor.block <= MAX_GAP_BLOCKS
    const needsLogs = until === undefined || until > BigInt(cursor.block)
    if (canClose && needsLogs) {
      const range = { after: { number: cursor.block, hash: cursor.hash }, to: head }
      const logFilter = typeof filter === 'function' ? filter(indexed) : filter
      const { last, logs, isForked } = await readProvedLogs(chain.rpc, logFilter, range, LAGGING_NODE_MS)
      if (isForked) return undefined
      if (last) return { ...indexed, logs, asOf: blockOf(last), lagBlocks: head - last.number }
    }
    const [headBlock, ownBlock] = await chain.rpc.batch([
      canClose && !needsLogs ? blockRequest(head) : undefined,
      blockRequest(cursor.block),
    ] as const)
    // A node without the cursor's block is behind if its head is lower, and on another branch otherwise.
    const isSameBranch = ownBlock.result ? ownBlock.result.hash === cursor.hash : head < cursor.block
    if (!isSameBranch) return undefined
    const newest = toHeader(headBlock?.result)
    if (newest) return { ...indexed, logs: [], asOf: blockOf(newest), lagBlocks: 0 }
    const asOf = blockOf({ number: cursor.block, timestamp: cursor.timestamp })
    return { ...indexed, logs: [], asOf, lagBlocks: Math.max(0, head - cursor.block) }
  }

  async function readHead(): Promise<number> {
    const [{ result: block }] = await chain.rpc.batch([blockRequest('latest')])
    if (!block) throw unreachable('the node has no newest block')
    return Number(block.number)
  }

  /** Returns the cursor; undefined if there is no index of these contracts, or the database is unreachable. */
  const readIndexCursor = async (): Promise<IndexCursor | undefined> => (await readIndex({ queries: () => [] }))?.cursor

  return { readSnapshot, readIndex, readIndexCursor }
}

/** Returns how many rows statements read. */
export const rowsReadBy = (results: readonly Pick<D1Result, 'meta'>[]): number =>
  results.reduce((sum, { meta }) => sum + meta.rows_read, 0)

/** Counts the reorgs that the index has followed. */
const COUNT_REORGS = 'SELECT coalesce(max(id), 0) AS reorgs FROM reorgs'

/** Runs several queries that are no transaction, again if a reorg changed the index meanwhile. Throws HISTORY_UNAVAILABLE. */
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

const blockOf = ({ number, timestamp }: { number: number; timestamp: number }): Block => ({
  number: BigInt(number),
  timestamp: BigInt(timestamp),
})

/** Logs that the database cannot be read. Missing tables are normal: the indexer creates them when it first starts. */
function logReadFailure(error: unknown) {
  const message = error instanceof Error ? error.message : ''
  if (!/no such table/.test(message)) logEvent('history unreadable')
}

/** Handles rejections of optional results: returns undefined for HISTORY_UNAVAILABLE and rethrows other errors. */
export const undefinedIfUnavailable = (error: unknown): undefined => {
  if (!(error instanceof Refusal && error.body.code === 'HISTORY_UNAVAILABLE')) throw error
}
