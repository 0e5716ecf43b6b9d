import { DurableObject } from 'cloudflare:workers'
import { createChain } from '../chain/client.ts'
import { parseConfig } from '../config.ts'
import { Refusal } from '../errors.ts'
import { logEvent } from '../executor/log.ts'
import { createFollower, type Follower, type Listener, type Step } from './follower.ts'
import type { NodeLog } from './node.ts'
import { scopeOf } from './scope.ts'
import { openStore } from './store.ts'

const BUSY_MS = 1_000
const SOON_MS = 500
const IDLE_MS = 5_000
const LONGEST_PAUSE_MS = 30_000
/** A backfill goes on for so long within one alarm. */
const TURN_MS = 10_000
const CATCH_UP_MS = 5_000
const IDLE_STEPS = 3

export type IndexerStatus = { cursor: number | undefined; head: number | undefined }

/**
 * The one writer of the history's database: its alarm follows the chain, about once a second while blocks come. All that
 * it must not forget is in the database; the cron trigger, which arms the alarm, brings it back after an eviction.
 */
export class HistoryIndexerObject extends DurableObject<Env> {
  /** Told of what was written; the events of one call are of one transaction. */
  protected readonly listener: Listener = { appended() {}, reorganized() {} }
  #follower: Promise<Follower | undefined> | undefined
  #step: Promise<Step | undefined> | undefined
  #last: Step | undefined
  readonly #relayed: NodeLog[] = []
  #writing: Promise<void> | undefined
  #pauseMs = BUSY_MS
  #failures = 0

  /** Arms the alarm unless it is armed for soon; does nothing where there is no chain to follow. */
  async wake(): Promise<void> {
    await this.#armBefore(Date.now())
  }

  override async alarm(): Promise<void> {
    const head = this.#last?.head
    const until = Date.now() + TURN_MS
    try {
      let step = await this.#next()
      if (step === undefined) return
      while (step?.more && Date.now() < until) step = await this.#next()
      this.#failures = 0
      this.#pauseMs = step?.head === head ? Math.min(this.#pauseMs * 1.5, IDLE_MS) : BUSY_MS
      await this.#armBefore(Date.now() + (step?.more ? 0 : this.#pauseMs))
    } catch (error) {
      this.#failures++
      logEvent('history failure', { cause: causeOf(error) })
      await this.#armBefore(Date.now() + Math.min(BUSY_MS * 2 ** this.#failures, LONGEST_PAUSE_MS))
    }
  }

  /** Follows to the block that is the newest now, unless that takes too long; answers where the index is. */
  async catchUp(): Promise<IndexerStatus> {
    const until = Date.now() + CATCH_UP_MS
    let step = await this.#next()
    const head = step?.head ?? 0
    // A chain that changes, or a node that is behind, makes a step that leads nowhere: it is not asked on and on.
    for (let idle = 0; step && (step.cursor?.block ?? -1) < head && idle < IDLE_STEPS && Date.now() < until; ) {
      const before: number | undefined = step.cursor?.block
      step = await this.#next()
      idle = step?.more || step?.cursor?.block !== before ? 0 : idle + 1
    }
    return this.status()
  }

  /** Takes logs from receipts of the service's own transactions, and looks at the chain soon. */
  async relayed(logs: readonly NodeLog[]): Promise<void> {
    await this.#armBefore(Date.now() + SOON_MS)
    this.#relayed.push(...logs)
    // One write at a time: what comes meanwhile is the next one's.
    this.#writing ??= this.#writeRelayed().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async #writeRelayed(): Promise<void> {
    const follower = await this.#prepare()
    while (this.#relayed.length > 0) await follower?.addRelayed(this.#relayed.splice(0))
  }

  status(): IndexerStatus {
    return { cursor: this.#last?.cursor?.block, head: this.#last?.head }
  }

  /** One step at a time, whoever asks for it. */
  #next(): Promise<Step | undefined> {
    this.#step ??= this.#prepare()
      .then(follower => follower?.step())
      .then(step => {
        this.#last = step ?? this.#last
        return step
      })
      .finally(() => {
        this.#step = undefined
      })
    return this.#step
  }

  async #armBefore(time: number) {
    const armed = await this.ctx.storage.getAlarm()
    if (armed === null || armed > time) await this.ctx.storage.setAlarm(time)
  }

  #prepare(): Promise<Follower | undefined> {
    this.#follower ??= this.#open().catch(error => {
      this.#follower = undefined
      throw error
    })
    return this.#follower
  }

  async #open(): Promise<Follower | undefined> {
    const config = parseConfig({ ...this.env })
    if (config.chain === undefined) return undefined
    const chain = createChain(config.chain, config.trading)
    const store = openStore(this.env.HISTORY, scopeOf(chain))
    await store.migrate()
    return createFollower({ chain, rpcUrls: config.chain.rpcUrls, store, listener: this.listener })
  }
}

const causeOf = (error: unknown) =>
  error instanceof Refusal ? error.body.code : error instanceof Error ? error.name : typeof error
