import { type Chain, createChain } from '../chain/configured-chain.ts'
import { createQueue, singleFlightAgain, sleep, withDeadline } from '../concurrency.ts'
import type { Config } from '../config/config.ts'
import { logEvent, logFailure } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { type ChainFollower, createChainFollower, type FollowerStep, type IndexerStatus } from './chain-follower.ts'
import { foldHours } from './fold-hours.ts'
import type { FollowerMemory } from './followed-contracts.ts'
import type { IndexListener } from './index-branch.ts'
import { openIndexStore } from './store.ts'
import { CursorMoved, indexKeyOf } from './tables/cursor.ts'

type Workers = { follower: ChainFollower; chain: Chain }

export type Indexer = ReturnType<typeof createIndexer>

/** How long a caller waits for the index to catch up. */
const CATCH_UP_MS = 3_000
/** Longer than elsewhere: the logs of a range are the largest response, and no caller waits for it. */
const RPC_TIMEOUT_MS = 10_000
/** Catching up ends after this many steps in a row that failed or did not move the cursor: the node is behind. */
const MAX_IDLE_STEPS = 4
/**
 * The pause of all callers after such a step. It doubles with each one, so that a node that stands still is not polled
 * by readers.
 */
const IDLE_PAUSE_MS = 100
const MAX_IDLE_PAUSE_MS = 800
const AUDIT_INTERVAL_MS = 60_000
const UNWATCHED_AUDIT_INTERVAL_MS = 300_000
/** How often the service looks whether an hour has become final. */
const FOLD_INTERVAL_MS = 60_000

/**
 * Creates the indexer of a chain: it follows the chain into the database, one step at a time, and folds each hour that
 * has become final. It reads up to the head while something waits for that, and otherwise only settled blocks.
 */
export function createIndexer(
  db: D1Database,
  { chain: chainConfig, trading }: { chain: NonNullable<Config['chain']> } & Pick<Config, 'trading'>,
  listener: IndexListener,
  memory?: FollowerMemory,
) {
  let watchedUntil = 0
  /** How many callers wait for the index to catch up. */
  let waiting = 0
  let idleSteps = 0
  /** When callers that wait may take the next step (epoch milliseconds). */
  let pausedUntil = 0
  /** A restart audits at once: an idle object is evicted between its alarms. */
  let auditedAt = 0
  let foldedAt = 0
  let workers: Promise<Workers> | undefined
  let lastStep: FollowerStep | undefined
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
    return { follower: createChainFollower(chain, store, listener, memory), chain }
  }

  /** Runs a step of the follower that starts after the call. */
  const step = singleFlightAgain(() => inOrder(runStep))

  async function runStep(): Promise<FollowerStep> {
    const { follower } = await start()
    lastStep = await follower.step(waiting > 0 ? 'head' : isWatched() ? 'events' : 'settled')
    return lastStep
  }

  /**
   * Compares the index with the chain once a minute, and less often while nothing waits for events. A failure is logged
   * and does not stop indexing.
   */
  async function auditSometimes(): Promise<void> {
    if (Date.now() - auditedAt < (isWatched() ? AUDIT_INTERVAL_MS : UNWATCHED_AUDIT_INTERVAL_MS)) return
    auditedAt = Date.now()
    await audit().catch(error => logFailure('audit failure', error))
  }

  async function audit(): Promise<void> {
    const { follower } = await start()
    const missing = await follower.audit() // not in order: a slow node must not hold up those who wait for a step
    if (missing === undefined || !(await inOrder(() => follower.repair(missing)))) return
    count('ats_index_repaired', {}, missing.count)
    logEvent('index repaired', { firstBlock: missing.firstBlock, count: missing.count })
  }

  const isWatched = () => Date.now() < watchedUntil

  /** Makes the steps of the next time read up to the head. */
  function watch(forMs: number): void {
    watchedUntil = Math.max(watchedUntil, Date.now() + forMs)
  }

  /**
   * Indexes up to a block, at most for about three seconds; without one, up to the head, after a rollback if the chain
   * has changed. Callers at the same time share their steps. Throws CHAIN_UNREACHABLE or CursorMoved.
   */
  async function catchUp(block?: number): Promise<void> {
    const deadline = Date.now() + CATCH_UP_MS
    waiting++
    try {
      await withDeadline(stepUntil(block, deadline), deadline, () => undefined) // a step may wait for a fold
    } finally {
      waiting--
    }
  }

  /** Lets the next audit look for the trades of the service's own transactions. */
  const expectOwn = async (logs: readonly NodeLog[]) => (await start()).follower.expectOwn(logs)

  /** Reads the events of the service's own transactions, at most for about three seconds. */
  async function readEvents(logs: readonly NodeLog[]): Promise<void> {
    const block = await (await start()).follower.newestFollowed(logs)
    const deadline = Date.now() + CATCH_UP_MS
    if (block !== undefined) await withDeadline(stepUntil(block, deadline), deadline, () => undefined)
  }

  async function stepUntil(block: number | undefined, deadline: number): Promise<void> {
    const reached = () => lastStep?.cursor?.block ?? -1
    let target = block
    let failure: unknown
    for (let idle = 0; target === undefined || reached() < target; ) {
      if (idle >= MAX_IDLE_STEPS || Date.now() >= deadline) {
        if (failure !== undefined) throw failure
        return
      }
      await sleep(Math.max(0, pausedUntil - Date.now()))
      const before = reached()
      failure = undefined
      const done = await step().catch(error => {
        failure = error
      })
      target ??= done?.head
      const isIdle = !done?.hasMore && reached() === before
      idle = isIdle ? idle + 1 : 0
      if (!isIdle) idleSteps = 0
      else if (Date.now() >= pausedUntil && reached() < (target ?? Number.POSITIVE_INFINITY))
        pausedUntil = Date.now() + Math.min(IDLE_PAUSE_MS * 2 ** idleSteps++, MAX_IDLE_PAUSE_MS)
    }
  }

  /**
   * Folds the hours that have become final, once a minute until a deadline. A failure is logged and does not stop
   * indexing.
   */
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

  /** Returns what the logs of receipts change, without reading the chain. */
  const changesIn = async (logs: readonly NodeLog[]) => (await start()).follower.changesIn(logs)

  /** Drops the rows that come from events, so that the next steps read them from the chain again. */
  async function restart(): Promise<void> {
    // In order, because a step would write after the cursor is gone.
    await inOrder(async () => {
      await (await start()).follower.restart()
      lastStep = undefined
    })
  }

  const status = (): IndexerStatus => ({ cursor: lastStep?.cursor?.block, head: lastStep?.head })

  return {
    step,
    catchUp,
    expectOwn,
    readEvents,
    watch,
    isWatched,
    audit,
    auditSometimes,
    fold,
    foldSometimes,
    changesIn,
    restart,
    status,
  }
}
