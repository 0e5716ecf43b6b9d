import { type Chain, createChain } from '../chain/configured-chain.ts'
import { createQueue, singleFlight, singleFlightAgain } from '../concurrency.ts'
import type { Config } from '../config/config.ts'
import { logEvent, logFailure } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import type { NodeLog } from '../rpc/requests.ts'
import {
  type ChainFollower,
  createChainFollower,
  type FollowerMemory,
  type FollowerStep,
  type IndexerStatus,
  type IndexListener,
} from './chain-follower.ts'
import { foldHours } from './fold-hours.ts'
import { createRelayedLogBuffer } from './relayed-log-buffer.ts'
import { openIndexStore } from './store.ts'
import { CursorMoved, indexKeyOf } from './tables/cursor.ts'

type Workers = { follower: ChainFollower; chain: Chain }

export type Indexer = ReturnType<typeof createIndexer>

const CATCH_UP_MS = 3_000
/** Longer than elsewhere: the logs of a range are the largest response, and no caller waits for it. */
const RPC_TIMEOUT_MS = 10_000
/** Catching up ends after this many steps in a row that did not move the cursor, because the chain keeps changing. */
const MAX_IDLE_STEPS = 3
/** How long the index is read up to the head after a read found it too far behind. */
const READ_WATCH_MS = 15_000
const AUDIT_INTERVAL_MS = 60_000
/** How often the service looks whether an hour has become final. */
const FOLD_INTERVAL_MS = 60_000

/**
 * Creates the indexer of a chain: it follows the chain into the database, one step at a time, and folds each hour that has
 * become final. It reads up to the head while something waits for that, and otherwise only settled blocks.
 */
export function createIndexer(
  db: D1Database,
  { chain: chainConfig, trading }: { chain: NonNullable<Config['chain']> } & Pick<Config, 'trading'>,
  listener: IndexListener,
  memory?: FollowerMemory,
) {
  let watchedUntil = 0
  /** A restart audits at once: an idle object is evicted between its alarms. */
  let auditedAt = 0
  let foldedAt = 0
  let workers: Promise<Workers> | undefined
  let lastStep: FollowerStep | undefined
  const relayedLogs = createRelayedLogBuffer()
  const inOrder = createQueue()

  /** Starts the follower. After a failure the next call retries. */
  function start(): Promise<Workers> {
    workers ??= migrateAndStart().catch(error => {
      workers = undefined
      throw error
    })
    return workers
  }

  async function migrateAndStart(): Promise<Workers> {
    const chain = createChain(chainConfig, trading, { timeoutMs: RPC_TIMEOUT_MS, isBackground: true })
    const store = openIndexStore(db, indexKeyOf(chain))
    await store.migrate()
    return { follower: createChainFollower({ chain, store, listener, memory }), chain }
  }

  /** Runs a step of the follower that starts after the call. */
  const step = singleFlightAgain(() => inOrder(runStep))

  async function runStep(): Promise<FollowerStep> {
    try {
      const { follower } = await start()
      const upTo = isWatched() ? 'head' : 'settled'
      lastStep = await follower.step(upTo)
      const { cursor, head } = lastStep
      relayedLogs.recordStep({ cursor, head: upTo === 'head' ? head : (cursor?.block ?? head) })
      return lastStep
    } catch (error) {
      relayedLogs.recordFailure()
      throw error
    } finally {
      // Not awaited: a write may wait for the node, and the next step must not.
      writeDueRelayed().catch(error => logFailure('history failure', error))
    }
  }

  /** Compares the index with the chain once a minute. A failure is logged and does not stop indexing. */
  async function auditSometimes(): Promise<void> {
    if (Date.now() - auditedAt < AUDIT_INTERVAL_MS) return
    auditedAt = Date.now()
    await audit().catch(error => logFailure('audit failure', error))
  }

  async function audit(): Promise<void> {
    const { follower } = await start()
    const missing = await inOrder(follower.auditAndRepair)
    if (missing === undefined) return
    count('ats_index_repaired', {}, missing.count)
    logEvent('index repaired', { ...missing })
  }

  const isWatched = () => Date.now() < watchedUntil

  /** Makes the steps of the next time read up to the head. */
  function watch(forMs: number): void {
    watchedUntil = Math.max(watchedUntil, Date.now() + forMs)
  }

  /** Indexes up to the head, for about three seconds. */
  async function catchUp(): Promise<void> {
    watch(READ_WATCH_MS)
    const deadline = Date.now() + CATCH_UP_MS
    const { cursor, head } = await step()
    let block = cursor?.block ?? -1
    for (let idleSteps = 0; block < head && idleSteps < MAX_IDLE_STEPS && Date.now() < deadline; ) {
      const next = await step()
      const reached = next.cursor?.block ?? -1
      idleSteps = next.hasMore || reached !== block ? 0 : idleSteps + 1
      block = reached
    }
  }

  /** Folds the hours that have become final, once a minute until a deadline. A failure is logged and does not stop indexing. */
  async function foldSometimes(deadline: number): Promise<void> {
    if (Date.now() - foldedAt < FOLD_INTERVAL_MS) return
    foldedAt = Date.now()
    await fold(deadline).catch(error => {
      if (!(error instanceof CursorMoved)) logFailure('fold failure', error)
    })
  }

  /** Folds the hours that have become final, until a deadline. Throws CursorMoved or CHAIN_UNREACHABLE. */
  async function fold(deadline: number): Promise<void> {
    const { chain } = await start()
    for (let hasMore = true; hasMore && Date.now() < deadline; )
      hasMore = await inOrder(async () => {
        const cursor = lastStep?.cursor
        return cursor !== undefined && (await foldHours(db, chain, cursor))
      })
  }

  /** Holds the logs of receipts until the cursor reaches them, and writes their trades if the index does not keep up. */
  async function addRelayed(logs: readonly NodeLog[]): Promise<void> {
    relayedLogs.hold(logs, Date.now())
    await writeDueRelayed()
  }

  /** Writes the trades of held logs if that is due. A write that fails loses its logs. */
  const writeDueRelayed = singleFlight(writeRelayed)

  async function writeRelayed(): Promise<void> {
    while (relayedLogs.isWriteDue(Date.now(), { isFollowed: isWatched() })) {
      const { follower } = await start()
      await follower.addRelayed(relayedLogs.take())
    }
  }

  /** Drops the rows that come from events, so that the next steps read them from the chain again. */
  async function restart(): Promise<void> {
    // In order, because a step would write after the cursor is gone.
    await inOrder(async () => {
      const { follower } = await start()
      await follower.restart()
      lastStep = undefined
    })
  }

  const status = (): IndexerStatus => ({ cursor: lastStep?.cursor?.block, head: lastStep?.head })

  return { step, catchUp, watch, isWatched, audit, auditSometimes, fold, foldSometimes, addRelayed, restart, status }
}
