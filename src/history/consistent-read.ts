import type { Block, Chain } from '../chain/chain.ts'
import { refuse } from '../errors/catalogue.ts'
import { Refusal } from '../errors/refusal.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest, type LogFilter, logsRequest, type NodeLog } from '../rpc/requests.ts'
import { scopeOf } from './index-key.ts'
import type { IndexerStatus } from './object.ts'
import type { Cursor } from './store.ts'

/** Index and chain on one branch: what the queries found up to the cursor, and the logs from there to `asOf`. */
export type View = {
  results: D1Result<Record<string, unknown>>[]
  /** Newest rows of the index are of this block, or of an older one. */
  cursor: Cursor
  /** Logs above the cursor, oldest first; none where they are too many blocks to ask for. */
  logs: NodeLog[]
  /** The block that the two together are complete to, and how far that is behind the node's newest. */
  asOf: Block
  lagBlocks: number
}

export type Look = {
  /** What to ask of the index, all of it in one snapshot. */
  queries: (db: D1DatabaseSession) => D1PreparedStatement[]
  /** The node's newest block, as the caller's own read found it. */
  head: Promise<Block>
  /** Which logs fill the gap to the head; they are not asked for where the cursor is beyond `until`. */
  filter: LogFilter
  until?: bigint | undefined
}

export type Viewer = ReturnType<typeof createViewer>

/** More blocks than this are not read for one answer: it is complete to the cursor instead, and says so. */
export const MOST_GAP = 1_000
const ATTEMPTS = 4
const PAUSE_MS = 50

/** Reads the index, and the chain where the index ends. `catchUp` makes the indexer look at the chain at once. */
export function createViewer({
  db,
  chain,
  catchUp,
}: {
  db: D1Database
  chain: Chain
  catchUp: () => Promise<IndexerStatus>
}) {
  const scope = scopeOf(chain)

  /**
   * What happened up to the newest block. Both come from one branch: the chain must still have the cursor's block, or
   * else the indexer goes back first. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
   */
  async function view(look: Look): Promise<View> {
    const head = look.head
    let failure: unknown
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const [indexed, newest] = await Promise.all([ask(look), head])
      const found = indexed && (await attach(indexed, attempt === 1 ? newest : undefined, look))
      if (found) return found
      failure = await catchUp().then(
        () => new Error('index and node are of different branches, or there is no index'),
        error => error,
      )
      if (attempt > 1) await scheduler.wait(PAUSE_MS * attempt) // blocks are being taken back, or a node is behind
    }
    throw refuse('HISTORY_UNAVAILABLE', {}, { cause: failure })
  }

  /** Cursor and results of one snapshot; undefined where there is no index of these contracts yet. */
  async function ask({ queries }: Pick<Look, 'queries'>): Promise<Pick<View, 'cursor' | 'results'> | undefined> {
    // A replica that is behind does no harm: the gap is counted from its own cursor.
    const session = db.withSession('first-unconstrained')
    const where = session.prepare('SELECT scope, block, hash, timestamp, head, final FROM cursor')
    try {
      const [cursors, ...results] = await session.batch<Record<string, unknown>>([where, ...queries(session)])
      const cursor = cursors?.results[0] as (Cursor & { scope: string }) | undefined
      return cursor?.scope === scope ? { cursor, results } : undefined
    } catch (error) {
      logged(error)
      return undefined
    }
  }

  /** Closes the gap; undefined where the index is of another branch than the node. */
  async function attach(
    { cursor, results }: Pick<View, 'cursor' | 'results'>,
    known: Block | undefined,
    { filter, until }: Look,
  ): Promise<View | undefined> {
    const head = known === undefined ? await newestBlock() : Number(known.number)
    const isClosable = head > cursor.block && head - cursor.block <= MOST_GAP
    const isNeeded = until === undefined || until > BigInt(cursor.block)
    const range = { fromBlock: cursor.block + 1, toBlock: head }
    const gapRequest = isClosable && isNeeded ? logsRequest(filter, range) : undefined
    // The cursor's block is asked after the logs: those of a branch that came meanwhile do not fit it.
    const requests = [blockRequest(head), gapRequest, blockRequest(cursor.block)] as const
    const [end, gap, own] = await chain.rpc.batch(requests)
    const last = end.result
    if (head >= cursor.block && own.result?.hash !== cursor.hash) return undefined
    const cursorBlock = { number: BigInt(cursor.block), timestamp: BigInt(cursor.timestamp) }
    if (!isClosable || gap?.error || !last)
      return { results, cursor, logs: [], asOf: cursorBlock, lagBlocks: Math.max(0, head - cursor.block) }
    const logs = gap?.result ?? []
    if (logs.some(log => Number(log.blockNumber) === head && log.blockHash !== last.hash)) return undefined
    const asOf = { number: BigInt(head), timestamp: BigInt(last.timestamp) }
    return { results, cursor, logs, asOf, lagBlocks: 0 }
  }

  async function newestBlock(): Promise<number> {
    const [{ result: block }] = await chain.rpc.batch([blockRequest('latest')])
    if (!block) throw unreachable('the node has no newest block')
    return Number(block.number)
  }

  /** The block that the index is whole to; undefined where there is none of these contracts, or it cannot be read. */
  const reach = async (): Promise<number | undefined> => (await ask({ queries: () => [] }))?.cursor.block

  return { view, reach }
}

/** A database that is not there yet is no event: the indexer creates its tables. */
function logged(error: unknown) {
  const message = error instanceof Error ? error.message : ''
  if (!/no such table/.test(message)) console.error(JSON.stringify({ level: 'error', event: 'history unreadable' }))
}

/** For what an answer can do without. */
export const unlessUnavailable = (error: unknown): undefined => {
  if (!(error instanceof Refusal && error.body.code === 'HISTORY_UNAVAILABLE')) throw error
}
