import { type Chain, createChain, type TradingChain } from '../chain/configured-chain.ts'
import { createQueue, singleFlight, singleFlightAgain } from '../concurrency.ts'
import type { Config } from '../config/config.ts'
import { logFailure } from '../log.ts'
import type { NodeLog } from '../rpc/requests.ts'
import {
  type ChainFollower,
  createChainFollower,
  type FollowerStep,
  type IndexerStatus,
  type IndexListener,
} from './chain-follower.ts'
import { createEquitySampler, type EquitySampler, openSampleStore } from './equity-sampler.ts'
import { createRelayedLogBuffer } from './relayed-log-buffer.ts'
import { openIndexStore } from './store.ts'
import { CursorMoved, type IndexCursor, indexKeyOf } from './tables/cursor.ts'

/** The sampler runs only on a chain with trading contracts. */
type Workers = { follower: ChainFollower; sampler: EquitySampler | undefined }

export type Indexer = ReturnType<typeof createIndexer>

const CATCH_UP_MS = 3_000
/** Longer than elsewhere: the logs of a range are the largest response, and no caller waits for it. */
const RPC_TIMEOUT_MS = 10_000
/** Catching up ends after this many steps in a row that did not move the cursor, because the chain keeps changing. */
const MAX_IDLE_STEPS = 3
/** The number of steps to reach a block that the node has: one sees it as the head, a later one reads up to it. */
const MAX_STEPS_TO_BLOCK = 8

/** Creates the indexer of a chain: it follows the chain into the database and takes samples, one step at a time. */
export function createIndexer(
  db: D1Database,
  {
    chain: chainConfig,
    trading,
    headAgeMs,
  }: { chain: NonNullable<Config['chain']> } & Pick<Config, 'trading' | 'headAgeMs'>,
  listener: IndexListener,
) {
  let workers: Promise<Workers> | undefined
  let lastStep: FollowerStep | undefined
  const relayedLogs = createRelayedLogBuffer()
  const inOrder = createQueue()

  /** Starts follower and sampler. After a failure the next call retries. */
  function start(): Promise<Workers> {
    workers ??= migrateAndStart().catch(error => {
      workers = undefined
      throw error
    })
    return workers
  }

  async function migrateAndStart(): Promise<Workers> {
    const chain = createChain(chainConfig, trading, RPC_TIMEOUT_MS)
    const store = openIndexStore(db, indexKeyOf(chain))
    await store.migrate()
    const follower = createChainFollower({
      chain,
      store,
      headAgeMs,
      listener: {
        onAppend(rows) {
          sampler?.onAppend(rows)
          listener.onAppend(rows)
        },
        onReorg(reorg) {
          sampler?.onReorg()
          listener.onReorg(reorg)
        },
      },
    })
    const sampler = isTrading(chain)
      ? createEquitySampler({ chain, samples: openSampleStore(db, chain), vaults: follower.vaults })
      : undefined
    return { follower, sampler }
  }

  /** Runs a step of the follower that starts after the call. */
  const step = singleFlightAgain(() => inOrder(runStep))

  async function runStep(): Promise<FollowerStep> {
    try {
      const { follower } = await start()
      lastStep = await follower.step()
      relayedLogs.recordStep(lastStep)
      return lastStep
    } catch (error) {
      relayedLogs.recordFailure()
      throw error
    } finally {
      // Not awaited: a write may wait for the node, and the next step must not.
      writeDueRelayed().catch(error => logFailure('history failure', error))
    }
  }

  /** Indexes up to the head, for about three seconds. */
  async function catchUp(): Promise<void> {
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

  /** Indexes up to a block. Returns the cursor, or undefined if it did not get there. */
  async function followTo(block: number): Promise<IndexCursor | undefined> {
    let cursor = lastStep?.cursor
    for (let steps = 0; steps < MAX_STEPS_TO_BLOCK && (cursor?.block ?? -1) < block; steps++) {
      if (steps > 1 && headAgeMs > 0) await scheduler.wait((2 * headAgeMs) / MAX_STEPS_TO_BLOCK)
      cursor = (await step()).cursor
    }
    return cursor !== undefined && cursor.block >= block ? cursor : undefined
  }

  /**
   * Samples what is due at the cursor, until a deadline. A failure is logged and does not stop indexing. A call during a
   * sampling causes another one, because the first may have started at an earlier cursor.
   */
  const sampleDue = singleFlightAgain((deadline: number) =>
    sampleRounds(deadline).catch(error => logFailure('sampling failure', error)),
  )

  async function sampleRounds(deadline: number): Promise<void> {
    const { sampler } = await start()
    for (let hasMore = true; hasMore && Date.now() < deadline; ) {
      const cursor = lastStep?.cursor
      if (cursor === undefined || !sampler?.isDue(cursor)) return
      hasMore = await sampler.sampleRound(cursor, followTo).catch(repeatAtNewCursor)
    }
  }

  /** Handles a step that moved the cursor while a page was sampled: the page is repeated. */
  async function repeatAtNewCursor(error: unknown): Promise<true> {
    if (!(error instanceof CursorMoved)) throw error
    await step()
    return true
  }

  /** Holds the logs of receipts until the cursor reaches them, and writes their trades if the index does not keep up. */
  async function addRelayed(logs: readonly NodeLog[]): Promise<void> {
    relayedLogs.hold(logs, Date.now())
    await writeDueRelayed()
  }

  /** Writes the trades of held logs if that is due. A write that fails loses its logs. */
  const writeDueRelayed = singleFlight(writeRelayed)

  async function writeRelayed(): Promise<void> {
    while (relayedLogs.isWriteDue(Date.now())) {
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

  return { step, catchUp, sampleDue, addRelayed, restart, status }
}

const isTrading = (chain: Chain): chain is TradingChain => chain.trading !== undefined
