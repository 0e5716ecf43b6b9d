import { DurableObject } from 'cloudflare:workers'
import { parseConfig } from '../config/config.ts'
import { logFailure } from '../log.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { IndexerStatus, IndexListener } from './chain-follower.ts'
import { createIndexer, type Indexer } from './run-follower-and-sampler.ts'

/** The pause between steps while blocks arrive; without blocks it grows to the maximum. */
const STEP_PAUSE_MS = 1_000
const MAX_STEP_PAUSE_MS = 5_000
const MAX_FAILURE_PAUSE_MS = 30_000
/** How soon the chain is read after a relayed transaction. */
const RELAYED_PAUSE_MS = 500
/** How long a backfill runs within one alarm. */
const ALARM_MS = 10_000
/** The minimum time between two samplings. More samples of a busy agent would add no information. */
const SAMPLING_PAUSE_MS = 5_000

/**
 * The only writer of the history database. Its alarm follows the chain, about once a second while blocks arrive. All state
 * but the held logs of receipts is in the database; the cron trigger arms the alarm again after an eviction.
 */
export class HistoryIndexerObject extends DurableObject<Env> {
  protected readonly listener: IndexListener = { onAppend() {}, onReorg() {} }
  #indexer: Indexer | undefined
  #sampledAt = 0
  #pauseMs = STEP_PAUSE_MS
  #failures = 0

  /** Arms the alarm, unless it is armed. */
  async wake(): Promise<void> {
    await this.#armBefore(Date.now())
  }

  override async alarm(): Promise<void> {
    const indexer = this.#open()
    if (indexer === undefined) return
    const deadline = Date.now() + ALARM_MS
    const { head: previousHead } = indexer.status()
    try {
      let step = await indexer.step()
      while (step.hasMore && Date.now() < deadline) step = await indexer.step()
      this.#failures = 0
      this.#pauseMs = step.head === previousHead ? Math.min(this.#pauseMs * 1.5, MAX_STEP_PAUSE_MS) : STEP_PAUSE_MS
      if (!step.hasMore && Date.now() > this.#sampledAt + SAMPLING_PAUSE_MS) await this.#sample(indexer, deadline)
      await this.#armBefore(Date.now() + (step.hasMore ? 0 : this.#pauseMs))
    } catch (error) {
      this.#failures++
      logFailure('history failure', error)
      await this.#armBefore(Date.now() + Math.min(STEP_PAUSE_MS * 2 ** this.#failures, MAX_FAILURE_PAUSE_MS))
    }
  }

  /** Indexes up to the head, unless that takes too long. Throws CHAIN_UNREACHABLE. */
  async catchUp(): Promise<IndexerStatus> {
    await this.#open()?.catchUp()
    return this.status()
  }

  /** Adds the logs of the service's own receipts, whole receipts at a time, and schedules a read of the chain. */
  async addRelayed(logs: readonly NodeLog[]): Promise<void> {
    await this.#armBefore(Date.now() + RELAYED_PAUSE_MS)
    await this.#open()?.addRelayed(logs)
  }

  /** Indexes up to the head and takes the samples that are due there. */
  async sample(): Promise<void> {
    const indexer = this.#open()
    await indexer?.catchUp()
    if (indexer) await this.#sample(indexer, Date.now() + ALARM_MS)
  }

  /** Drops the rows that come from events and reads them from the chain again, from the next alarm on. */
  async replay(): Promise<void> {
    await this.#open()?.restart()
    this.#pauseMs = STEP_PAUSE_MS
    await this.#armBefore(Date.now())
  }

  status(): IndexerStatus {
    return this.#indexer?.status() ?? { cursor: undefined, head: undefined }
  }

  async #sample(indexer: Indexer, deadline: number): Promise<void> {
    await indexer.sampleDue(deadline)
    this.#sampledAt = Date.now()
  }

  async #armBefore(time: number): Promise<void> {
    const armed = await this.ctx.storage.getAlarm()
    if (armed === null || armed > time) await this.ctx.storage.setAlarm(time)
  }

  /** Returns undefined if the deployment has no chain. */
  #open(): Indexer | undefined {
    if (this.#indexer) return this.#indexer
    const { chain, trading, headAgeMs } = parseConfig({ ...this.env })
    if (chain === undefined) return undefined
    this.#indexer = createIndexer(this.env.HISTORY, { chain, trading, headAgeMs }, this.listener)
    return this.#indexer
  }
}
