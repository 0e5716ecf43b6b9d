import { DurableObject } from 'cloudflare:workers'
import { logFailure } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { assembleKeeper } from './assemble-keeper.ts'
import type { KeeperCycle } from './cycle.ts'
import { type KeeperStatus, keeperStatusOf } from './keeper-status.ts'
import { findPositionReport, type PositionReport } from './position-report.ts'
import { type KeeperStore, openKeeperStore } from './store.ts'

/** The interval between cycles while positions are open. */
const CYCLE_INTERVAL_MS = 1_000
/** The interval while none is: positions may also be opened without this service. */
const IDLE_INTERVAL_MS = 15_000
const MAX_BACKOFF_MS = 30_000

/**
 * Fires due exit rules. The alarm runs a cycle about once a second. All that must not be lost is in the store; the alarm
 * and the cron trigger, which arms it, restart the keeper after an eviction.
 */
export class KeeperObject extends DurableObject<Env> {
  readonly #store: KeeperStore
  #cycle: KeeperCycle | undefined
  #running: Promise<void> | undefined
  /** The number of cycles that failed in a row. */
  #failures = 0

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#store = openKeeperStore(ctx.storage.sql)
  }

  /** Arms the alarm for the next cycle, unless no keeper is configured. */
  async wake(): Promise<void> {
    if (this.#assembled() === undefined) return
    await this.#armBefore(Date.now() + CYCLE_INTERVAL_MS)
  }

  override async alarm(): Promise<void> {
    if (this.#assembled() === undefined) return
    try {
      await this.runCycle()
      this.#failures = 0
      count('ats_keeper_cycles', { result: 'ok' })
    } catch (error) {
      this.#failures++
      count('ats_keeper_cycles', { result: 'failed' })
      logFailure('keeper failure', error)
    } finally {
      await this.#armBefore(Date.now() + this.#intervalMs())
    }
  }

  /** Runs one cycle. A call during a cycle joins it. */
  runCycle(): Promise<void> {
    this.#running ??= (this.#assembled()?.run() ?? Promise.resolve()).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  find(positionId: bigint): PositionReport | undefined {
    return findPositionReport(this.#store, positionId)
  }

  /** `waitMs` bounds how long the keeper's lane waits for a node. */
  async status(waitMs?: number): Promise<KeeperStatus> {
    const lanes = await this.#assembled()?.lanes(waitMs)
    return keeperStatusOf(this.#store, lanes ?? [])
  }

  /** Arms the alarm unless it is armed for an earlier time: a wake during a cycle may have done so. */
  async #armBefore(time: number) {
    const armed = await this.ctx.storage.getAlarm()
    if (armed === null || armed > time) await this.ctx.storage.setAlarm(time)
  }

  #intervalMs(): number {
    if (this.#failures > 0) return Math.min(CYCLE_INTERVAL_MS * 2 ** this.#failures, MAX_BACKOFF_MS)
    const hasWork = this.#store.openCount() > 0 || this.#store.batches().length > 0
    return hasWork ? CYCLE_INTERVAL_MS : IDLE_INTERVAL_MS
  }

  #assembled(): KeeperCycle | undefined {
    this.#cycle ??= assembleKeeper(this.env, this.#store)
    return this.#cycle
  }
}
