import { DurableObject } from 'cloudflare:workers'
import type { Hex } from 'viem'
import { armBefore } from '../alarm.ts'
import type { PriceNeed } from '../chain/carried-prices.ts'
import { createSharedReads } from '../chain/combine-concurrent-reads.ts'
import { createChain, type TradingChain } from '../chain/configured-chain.ts'
import { singleFlightAgain, withDeadline } from '../concurrency.ts'
import { type Config, parseConfig } from '../config/config.ts'
import { createExecutor } from '../executor/client.ts'
import { logFailure } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { createPriceReports } from '../price-providers/data-streams.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import { type Book, type ChainChanges, openBook, type Waking } from './book.ts'
import { createCycle, type KeeperCycle } from './cycle.ts'
import { newOrderEntry } from './order-entry.ts'
import {
  findOrderReport,
  findPositionReport,
  type KeeperStatus,
  keeperStatusOf,
  type PositionReport,
} from './position-report.ts'
import { createReportWatch } from './report-watch.ts'

/** The interval between the starts of cycles while an exit is in flight or waits for another try. */
const CYCLE_INTERVAL_MS = 1_000
/** The pause after a cycle that took longer than that interval, unless a price has reached something meanwhile. */
const MIN_PAUSE_MS = 250
/** How long `runCycle` waits for transactions. Later outcomes are recorded when they arrive. */
const OUTCOME_TIMEOUT_MS = 3_000
/**
 * The interval while no position and no order is open: this service wakes the keeper, but positions may also be opened
 * without it.
 */
const IDLE_INTERVAL_MS = 60_000
/** The longest pause after a failed cycle, and so how late an exit may be after an outage of the nodes. */
const MAX_BACKOFF_MS = 5_000

/**
 * Fires due exit rules and executes orders. The alarm runs a cycle when prices have changed, every
 * KEEPER_INTERVAL_SECONDS while positions or orders are open, and once a second while transactions are in flight. All
 * durable state is in the book. After an eviction, the alarm restarts the keeper; the cron trigger arms the alarm.
 */
export class KeeperObject extends DurableObject<Env> {
  readonly #book: Book
  #parsed: Config | undefined
  #cycle: KeeperCycle | undefined
  /** Resolves when the exits of all cycles so far are recorded. */
  #outcomes: Promise<void> = Promise.resolve()
  /** The number of cycles that failed in a row. */
  #failures = 0
  /** When the alarm last started a cycle (epoch milliseconds). */
  #startedAt = 0
  /**
   * How long after its start the next cycle follows, if that is soon: prices have changed since, or it found exits due.
   */
  #hurryMs: number | undefined
  #reportWatch: ReturnType<typeof createReportWatch> | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#book = openBook(ctx.storage.sql)
  }

  /**
   * Makes the next cycle look at what has changed. Without changes it starts an idle keeper, or one whose alarm was
   * lost. Returns how many orders the keeper did not know.
   */
  async changed(changes?: ChainChanges): Promise<number> {
    if (this.#assembled() === undefined) return 0
    const { positions = [], orders = [], isUrgent = false, reorgAbove } = changes ?? {}
    for (const change of positions) this.#book.mark(change)
    if (reorgAbove !== undefined) this.#book.markAbove(reorgAbove)
    const unknown = orders.filter(({ orderId }) => this.#book.orders.entry(orderId) === undefined)
    const mustStart = unknown.length > 0 || (this.#isIdle() && (positions.length > 0 || changes === undefined))
    for (const order of unknown) this.#book.orders.put(newOrderEntry(order))
    if (mustStart) await this.#armBefore(Date.now() + CYCLE_INTERVAL_MS)
    else if (changes === undefined) await this.#armBefore(Date.now() + this.#heartbeatMs)
    if (isUrgent) await this.#hurry()
    return unknown.length
  }

  /** Makes the next cycle start as soon as the last one is a second old, or after `delayMs`. */
  async #hurry(delayMs = CYCLE_INTERVAL_MS): Promise<void> {
    // The alarm is not armed while it runs a cycle, which may have read the old prices.
    this.#hurryMs = Math.min(delayMs, this.#hurryMs ?? delayMs)
    if ((await this.ctx.storage.getAlarm()) !== null && !this.#isIdle())
      await this.#armBefore(Math.max(Date.now(), this.#startedAt + delayMs))
  }

  override async alarm(): Promise<void> {
    if (this.#assembled() === undefined) return
    this.#startedAt = Date.now()
    this.#hurryMs = undefined
    try {
      // Exits in flight do not delay the next cycle, which a price may start at once.
      const { outcomes, hasDueExits, failure } = await this.#startCycle({ alwaysCompares: false })
      if (hasDueExits) this.#hurryMs ??= CYCLE_INTERVAL_MS // the price may have passed their next rule too
      if (failure !== undefined) throw failure
      this.#failures = 0
      outcomes.then(
        () => count('ats_keeper_cycles', { result: 'ok' }),
        error => this.#recordFailure(error),
      )
    } catch (error) {
      this.#recordFailure(error)
    } finally {
      this.#reportWatch?.update()
      const interval = this.#intervalMs()
      await this.#armBefore(Math.max(this.#startedAt + interval, Date.now() + (interval > 0 ? MIN_PAUSE_MS : 0)))
    }
  }

  #recordFailure(error: unknown): void {
    this.#failures++
    count('ats_keeper_cycles', { result: 'failed' })
    logFailure('keeper failure', error)
  }

  /** Runs one cycle, which begins after the call, and waits for its exits and for earlier cycles' exits. */
  async runCycle(): Promise<void> {
    const cycle = await this.#startCycle({ alwaysCompares: true })
    await withDeadline(Promise.all([cycle.outcomes, this.#outcomes]), Date.now() + OUTCOME_TIMEOUT_MS, () => undefined)
    if (cycle.failure !== undefined) throw cycle.failure
  }

  waking(): Waking | undefined {
    return this.#book.waking()
  }

  readonly #startCycle = singleFlightAgain(async (options: { alwaysCompares: boolean }) => {
    const cycle = await this.#assembled()?.run(options)
    this.#outcomes = Promise.allSettled([this.#outcomes, cycle?.outcomes]).then(() => undefined)
    return cycle ?? { outcomes: Promise.resolve(), hasDueExits: false }
  })

  find(positionId: bigint): PositionReport | undefined {
    return findPositionReport(this.#book, positionId)
  }

  findOrders(orderIds: readonly Hex[]): ReturnType<typeof findOrderReport>[] {
    return orderIds.map(orderId => findOrderReport(this.#book, orderId))
  }

  /** `waitMs` bounds how long the keeper's lane waits for a node. */
  async status(waitMs?: number): Promise<KeeperStatus> {
    const lanes = await this.#assembled()?.lanes(waitMs)
    return keeperStatusOf(this.#book, lanes ?? [])
  }

  /**
   * Arms the alarm unless it is armed for an earlier time, for example by a wake during a cycle. In a rehearsal cycles
   * run only when the market has moved, so that the same market gives the same exits.
   */
  async #armBefore(time: number) {
    if (this.#config.rehearsalUrl === undefined) await armBefore(this.ctx.storage, time)
  }

  #intervalMs(): number {
    if (this.#hurryMs !== undefined) return this.#hurryMs
    if (this.#failures > 0) return Math.min(CYCLE_INTERVAL_MS * 2 ** this.#failures, MAX_BACKOFF_MS)
    const { orders } = this.#book
    const isBusy = [this.#book.batches(), orders.batches(), orders.unchecked(1)].some(({ length }) => length > 0)
    if (isBusy) return CYCLE_INTERVAL_MS
    if (this.#isIdle()) return IDLE_INTERVAL_MS
    const heartbeatMs = this.#heartbeatMs
    const nextTryAt = Math.min(
      this.#book.nextTryAt() ?? heartbeatMs + this.#startedAt,
      orders.nextWakeAt() * 1_000,
      this.#reportWatch?.retryAt() ?? Number.POSITIVE_INFINITY,
    )
    return Math.max(CYCLE_INTERVAL_MS, Math.min(nextTryAt - this.#startedAt, heartbeatMs))
  }

  /**
   * The interval while positions only wait for prices. Whoever learns of new prices wakes the keeper, so this is how
   * late an exit may be after a price that others have posted. Providers bill each cycle.
   */
  get #heartbeatMs(): number {
    return this.#config.keeper?.intervalMs ?? IDLE_INTERVAL_MS
  }

  /** Whether there is nothing to watch. */
  #isIdle = () => this.#book.openCount() === 0 && this.#book.orders.count() === 0

  get #config(): Config {
    this.#parsed ??= parseConfig({ ...this.env })
    return this.#parsed
  }

  /** Returns undefined if there is no keeper key or no trading contracts. */
  #assembled() {
    if (this.#cycle) return this.#cycle
    const config = this.#config
    const provider = createPriceReports(config.dataStreams, createSharedReads)
    const { isConfigured, carriedFor } = provider
    const reports = { isConfigured, carriedFor: (need: PriceNeed) => carriedFor(need, { isExit: true }) }
    const chain = config.chain && createChain(config.chain, config.trading, { reports })
    if (chain?.trading === undefined || config.keeper === undefined) return undefined
    const parts = {
      chain: chain as TradingChain,
      executor: createExecutor(this.env.EXECUTOR_LANE, [config.keeper.key], config),
      book: this.#book,
      respectSessions: config.respectSessions,
    }
    if (config.dataStreams)
      this.#reportWatch = createReportWatch({
        config: config.dataStreams,
        chain,
        book: this.#book,
        reports: provider,
        hurry: delayMs => void this.#hurry(delayMs).catch(logUnexpected),
      })
    // Without lanes that relay, the keeper's own keeps the budgets.
    const lanes = config.executorKeys.length > 0 ? config.executorKeys : [config.keeper.key]
    const budgets = createExecutor(this.env.EXECUTOR_LANE, lanes, config)
    this.#cycle = createCycle({ ...parts, budgets })
    return this.#cycle
  }
}
