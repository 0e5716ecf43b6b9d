import { DurableObject } from 'cloudflare:workers'
import { armBefore, armedAt } from '../alarm.ts'
import { singleFlightAgain } from '../concurrency.ts'
import { parseConfig } from '../config/config.ts'
import { createLaneCalls } from '../executor/wake-lanes.ts'
import type { ChainChanges } from '../keeper/book.ts'
import { createKeeper, type Keeper } from '../keeper/client.ts'
import { logFailure } from '../log.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { IndexerStatus } from './chain-follower.ts'
import type { IndexListener } from './index-branch.ts'
import { createIndexer, type Indexer } from './run-follower.ts'
import { type PlacedOrder, readOpenOrders } from './tables/orders.ts'

/** The pause between steps while something waits for events; it grows to the maximum while the head stays the same. */
const STEP_PAUSE_MS = 1_000
const MAX_STEP_PAUSE_MS = 5_000
/** The pause while blocks come so fast that only events are looked for: with all other calls, that is one a second. */
const EVENTS_PAUSE_MS = 1_250
/**
 * The pause while nothing waits for events. The index is behind by as much, and by the time that blocks take to settle.
 */
const UNWATCHED_PAUSE_MS = 180_000
const MAX_FAILURE_PAUSE_MS = 30_000
/** The minimum time between two catch-ups that relayed transactions cause. */
const MIN_CATCH_UP_INTERVAL_MS = 300
/** How often the keeper is sent a page of open orders, and how many a page has. */
const ORDERS_INTERVAL_MS = 60_000
const ORDERS_PER_PAGE = 500
/** How often the event log looks for alerts: prices go stale even if nothing happens on the chain. */
const ALERT_INTERVAL_MS = 15_000
/** How long a backfill runs within one alarm. */
const ALARM_MS = 10_000

/**
 * The only writer of the history database. Its alarm follows the chain: about once a second while blocks arrive and
 * somebody waits for them, every three minutes otherwise. All state is in the database, and its storage has what it
 * knows of the node; the cron trigger arms the alarm again after an eviction.
 */
export class HistoryIndexerObject extends DurableObject<Env> {
  readonly #config = parseConfig({ ...this.env })
  #indexer: Indexer | undefined
  /** The logs of the service's own transactions that were not read from the chain yet. */
  #relayedLogs: NodeLog[] = []
  readonly #readRelayed = singleFlightAgain(
    async () => this.#open()?.readEvents(this.#relayedLogs.splice(0)),
    MIN_CATCH_UP_INTERVAL_MS,
  )
  #pauseMs = STEP_PAUSE_MS
  #failures = 0
  #hasEventLogStarted = false
  /** When the event log was last told to advance (epoch milliseconds). */
  #advancedAt = 0
  #keeper: Keeper | undefined
  /** Resolves once the keeper was told what it has not been told yet. */
  #told: Promise<unknown> = Promise.resolve()
  /** The last order that the keeper was sent, and when (epoch milliseconds). */
  #sentOrders: { last: PlacedOrder | undefined; at: number } = { last: undefined, at: 0 }

  /** Arms the alarm, unless it is armed, and starts the keeper. */
  async wake(): Promise<void> {
    this.#open()
    this.ctx.waitUntil(Promise.resolve(this.#keeper?.changed()).catch(() => {}))
    if ((await armedAt(this.ctx.storage)) === undefined) await this.#armBefore(Date.now())
  }

  override async alarm(): Promise<void> {
    const indexer = this.#open()
    if (indexer === undefined) return
    const deadline = Date.now() + ALARM_MS
    const { head: previousHead } = indexer.status()
    if (indexer.isWatched() && Date.now() - this.#advancedAt >= ALERT_INTERVAL_MS) this.#advanceEventLog()
    try {
      let step = await indexer.step()
      while (step.hasMore && Date.now() < deadline) step = await indexer.step()
      this.#failures = 0
      this.#pauseMs = step.isHeadKnown ? this.#pauseAfter(indexer, step.head !== previousHead) : EVENTS_PAUSE_MS
      // A keeper that is unreachable does not stop indexing.
      if (!step.hasMore) await this.#sendOpenOrders(deadline).catch(error => logFailure('history failure', error))
      if (!step.hasMore) await indexer.foldSometimes(deadline)
      if (!step.hasMore) await indexer.auditSometimes()
      await this.#armBefore(Date.now() + (step.hasMore ? 0 : this.#pauseMs))
    } catch (error) {
      this.#failures++
      logFailure('history failure', error)
      await this.#armBefore(Date.now() + Math.min(STEP_PAUSE_MS * 2 ** this.#failures, MAX_FAILURE_PAUSE_MS))
    }
  }

  #pauseAfter(indexer: Indexer, hasNewBlock: boolean): number {
    const isWatched = indexer.isWatched()
    if (!isWatched) return UNWATCHED_PAUSE_MS
    return hasNewBlock ? STEP_PAUSE_MS : Math.min(this.#pauseMs * 1.5, MAX_STEP_PAUSE_MS)
  }

  /**
   * Sends the keeper a page of the open orders once a minute, in turn, so that it learns those it was not told of.
   * While a page has such orders, the next one follows.
   */
  async #sendOpenOrders(deadline: number): Promise<void> {
    if (this.#keeper === undefined || Date.now() - this.#sentOrders.at < ORDERS_INTERVAL_MS) return
    this.#sentOrders.at = Date.now()
    for (let unknown = 1; unknown > 0 && Date.now() < deadline; ) {
      const page = await readOpenOrders(this.env.HISTORY, { after: this.#sentOrders.last, limit: ORDERS_PER_PAGE })
      unknown = page.length > 0 ? await this.#keeper.changed({ orders: page }) : 0
      this.#sentOrders.last = page.length < ORDERS_PER_PAGE ? undefined : page.at(-1)
      if (this.#sentOrders.last === undefined) return
    }
  }

  /** Follows the chain closely for a while: somebody waits for its events. */
  async watch(forMs: number): Promise<void> {
    const indexer = this.#open()
    if (indexer === undefined) return
    // A read that was too far behind makes steps read up to the head, but none of them come sooner.
    const isFollowed = indexer.isWatched() && this.#pauseMs <= MAX_STEP_PAUSE_MS
    if (!isFollowed) this.#pauseMs = STEP_PAUSE_MS
    indexer.watch(forMs)
    await this.#armBefore(Date.now() + (isFollowed ? this.#pauseMs : 0))
  }

  /**
   * Indexes up to a block, by default the head, unless that takes too long. Throws CHAIN_UNREACHABLE or CursorMoved.
   */
  async catchUp(block?: number): Promise<IndexerStatus> {
    await this.#open()?.catchUp(block)
    // The next step of a rehearsal depends on what the keeper knows.
    if (this.#config.rehearsalUrl !== undefined) await this.#told
    return this.status()
  }

  /**
   * Tells at once what the service's own transactions change, from the logs of the contracts that they call. If
   * something waits for events, the chain is read at once too; posted prices wait for the next step.
   */
  async relayed(logs: readonly NodeLog[]): Promise<void> {
    const indexer = this.#open()
    if (indexer === undefined) return
    const changes = await indexer.changesIn(logs)
    await indexer.expectOwn(logs)
    const { positions = [], orders = [], isUrgent = false } = changes
    this.#tellKeeper(changes)
    const hasOnlyPrices = isUrgent && positions.length + orders.length === 0
    if (!indexer.isWatched() || hasOnlyPrices) return
    this.#relayedLogs.push(...logs)
    await this.#readRelayed()
  }

  /** Indexes up to the head and folds the hours that have become final. */
  async fold(): Promise<void> {
    const indexer = this.#open()
    await indexer?.catchUp()
    await indexer?.fold(Date.now() + ALARM_MS)
  }

  /** Drops the rows that come from events and reads them from the chain again, from the next alarm on. */
  async replay(): Promise<void> {
    await this.#open()?.restart()
    this.#pauseMs = STEP_PAUSE_MS
    await this.#armBefore(Date.now())
    this.#hasEventLogStarted = false
    await this.#eventLog()?.restart()
  }

  status(): IndexerStatus {
    return this.#indexer?.status() ?? { cursor: undefined, head: undefined }
  }

  #armBefore = (time: number): Promise<void> => armBefore(this.ctx.storage, time)

  /** Returns undefined if the deployment has no chain. */
  #open(): Indexer | undefined {
    if (this.#indexer) return this.#indexer
    const { chain, trading, keeper } = this.#config
    if (chain === undefined) return undefined
    const isKept = trading !== undefined && keeper !== undefined
    this.#keeper = isKept ? createKeeper(this.env.KEEPER, { id: chain.id, trading }) : undefined
    this.#indexer = createIndexer(this.env.HISTORY, { chain, trading }, this.#listener(), {
      read: () => this.ctx.storage.get('node'),
      write: remembered => this.ctx.storage.put('node', remembered),
    })
    // Webhooks and subscribers that waited for events before an eviction still do.
    const watched = this.#eventLog()?.watchForSubscribers()
    this.ctx.waitUntil(Promise.resolve(watched).catch(error => logFailure('event streams failure', error)))
    return this.#indexer
  }

  /**
   * Returns what tells the keeper, the lanes and the event log of changes. A call may be lost: the keeper also compares
   * its positions with the chain, and the log reads everything after its position with the next call.
   */
  #listener(): IndexListener {
    return {
      onAppend: ({ changes, trades, prices, orders, events }) => {
        this.#tellKeeper(changes)
        if (!this.#hasEventLogStarted || trades.length + prices.length + orders.length + events.length > 0)
          this.#advanceEventLog()
      },
      onReorg: ({ ancestor }) => {
        this.#tellKeeper({ reorgAbove: BigInt(ancestor) })
        createLaneCalls(this.env.EXECUTOR_LANE, this.#config).reportReorg(ancestor)
        this.#sentOrders = { last: undefined, at: 0 } // orders may be open again
        this.#advanceEventLog()
      },
    }
  }

  #tellKeeper(changes: ChainChanges) {
    const { positions = [], orders = [], isUrgent = false, reorgAbove } = changes
    const isEmpty = positions.length + orders.length === 0 && !isUrgent && reorgAbove === undefined
    if (isEmpty) return
    this.#told = Promise.allSettled([this.#told, this.#keeper?.changed(changes)])
    this.ctx.waitUntil(this.#told)
  }

  #advanceEventLog() {
    this.#advancedAt = Date.now()
    const advanced = this.#eventLog()?.advance()
    const started = advanced?.catch(error => logFailure('event streams failure', error) ?? false)
    this.ctx.waitUntil(
      Promise.resolve(started).then(hasStarted => {
        this.#hasEventLogStarted = hasStarted ?? false
      }),
    )
  }

  #eventLog() {
    const { chain } = this.#config
    return chain && this.env.EVENT_STREAMS.getByName(`${chain.id}`)
  }
}
