import { DurableObject } from 'cloudflare:workers'
import { type Chain, createChain, type TradingChain } from '../chain/chain.ts'
import { parseConfig } from '../config.ts'
import { Refusal } from '../errors/refusal.ts'
import { logEvent } from '../log.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { createFollower, type Follower, type Listener, type Step } from './chain-follower.ts'
import { createSampler, type Sampler } from './equity-sampler.ts'
import { scopeOf } from './index-key.ts'
import { type Cursor, openStore } from './store.ts'
import { openSamples } from './tables/samples.ts'

const BUSY_MS = 1_000
const SOON_MS = 500
const IDLE_MS = 5_000
const LONGEST_PAUSE_MS = 30_000
/** A backfill goes on for so long within one alarm. */
const TURN_MS = 10_000
const CATCH_UP_MS = 5_000
const IDLE_STEPS = 3
/** What changes is sampled at once, and not again for so long: a busy agent's samples of a minute tell nothing more. */
const SAMPLING_PAUSE_MS = 5_000
/** Steps that bring the index to a block that the node had just now: one sees it, the next one reads to it. */
const MOST_STEPS = 4

/** Who works for the index; nobody samples where there is no trading. */
type Workers = { follower: Follower; sampler: Sampler | undefined }

export type IndexerStatus = { cursor: number | undefined; head: number | undefined }

/**
 * The one writer of the history's database: its alarm follows the chain, about once a second while blocks come. All that
 * it must not forget is in the database; the cron trigger, which arms the alarm, brings it back after an eviction.
 */
export class HistoryIndexerObject extends DurableObject<Env> {
  /** Told of what was written; the events of one call are of one transaction. */
  protected readonly listener: Listener = { appended() {}, reorganized() {} }
  #workers: Promise<Workers | undefined> | undefined
  #sampling: Promise<void> | undefined
  #sampledAt = 0
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
      if (!step?.more && Date.now() > this.#sampledAt + SAMPLING_PAUSE_MS) await this.#sampleSome(until)
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
    await this.#step?.catch(() => {}) // it may have asked before what the caller has seen
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
    const workers = await this.#prepare()
    while (this.#relayed.length > 0) await workers?.follower.addRelayed(this.#relayed.splice(0))
  }

  /** Follows to the newest block and samples everything that is due there. */
  async sample(): Promise<void> {
    await this.catchUp()
    await this.#sampleSome(Date.now() + TURN_MS)
  }

  status(): IndexerStatus {
    return { cursor: this.#last?.cursor?.block, head: this.#last?.head }
  }

  /** One step at a time, whoever asks for it. */
  #next(): Promise<Step | undefined> {
    this.#step ??= this.#prepare()
      .then(workers => workers?.follower.step())
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

  /** Samples what is due, one round at a time. That it fails is no matter of the index: it is tried again. */
  #sampleSome(until: number): Promise<void> {
    this.#sampling ??= this.#sample(until)
      .catch(error => logEvent('sampling failure', { cause: causeOf(error) }))
      .finally(() => {
        this.#sampling = undefined
        this.#sampledAt = Date.now()
      })
    return this.#sampling
  }

  async #sample(until: number): Promise<void> {
    const sampler = (await this.#prepare())?.sampler
    for (let isMore = true; isMore && Date.now() < until; ) {
      const cursor = this.#last?.cursor
      if (cursor === undefined || !sampler?.isDue(cursor)) return
      isMore = await sampler.turn(cursor, block => this.#follow(block))
    }
  }

  /** Brings the index to a block; undefined where it does not come there. */
  async #follow(block: number): Promise<Cursor | undefined> {
    let cursor = this.#last?.cursor
    for (let steps = 0; steps < MOST_STEPS && (cursor?.block ?? -1) < block; steps++)
      cursor = (await this.#next())?.cursor
    return cursor !== undefined && cursor.block >= block ? cursor : undefined
  }

  #prepare(): Promise<Workers | undefined> {
    this.#workers ??= this.#open().catch(error => {
      this.#workers = undefined
      throw error
    })
    return this.#workers
  }

  async #open(): Promise<Workers | undefined> {
    const config = parseConfig({ ...this.env })
    if (config.chain === undefined) return undefined
    const chain = createChain(config.chain, config.trading)
    const store = openStore(this.env.HISTORY, scopeOf(chain))
    await store.migrate()
    const listener: Listener = {
      appended: (rows, cursor) => {
        sampler?.noticed(rows)
        this.listener.appended(rows, cursor)
      },
      reorganized: reorg => {
        sampler?.forget()
        this.listener.reorganized(reorg)
      },
    }
    const follower = createFollower({ chain, store, listener })
    const sampler = isTrading(chain)
      ? createSampler({
          chain,
          samples: openSamples(this.env.HISTORY, store),
          vaults: follower.vaults,
        })
      : undefined
    return { follower, sampler }
  }
}

const isTrading = (chain: Chain): chain is TradingChain => chain.trading !== undefined

const causeOf = (error: unknown) =>
  error instanceof Refusal ? error.body.code : error instanceof Error ? error.name : typeof error
