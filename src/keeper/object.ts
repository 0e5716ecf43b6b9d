import { DurableObject } from 'cloudflare:workers'
import { createChain, type TradingChain } from '../chain/client.ts'
import { parseConfig } from '../config.ts'
import { Refusal } from '../errors/refusal.ts'
import { createExecutor } from '../executor/client.ts'
import { logEvent } from '../log.ts'
import type { KeeperStatus, Watched } from './client.ts'
import { createRounds, type Rounds } from './cycle.ts'
import { type Book, openBook } from './store.ts'

const OPEN_MS = 1_000
/** Positions may also be opened past this service. */
const IDLE_MS = 15_000
const LONGEST_PAUSE_MS = 30_000

/**
 * Fires exits on its own: its alarm looks at every open position about once a second. Everything that it must not
 * forget is in its book; the alarm and the cron trigger, which arms it, bring it back after an eviction.
 */
export class Keeper extends DurableObject<Env> {
  readonly #book: Book
  #rounds: Rounds | undefined
  #round: Promise<void> | undefined
  /** Rounds that failed in a row. */
  #failures = 0

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#book = openBook(ctx.storage.sql)
  }

  /** Arms the alarm unless it is armed for soon; does nothing where the keeper is not configured. */
  async wake(): Promise<void> {
    if (this.#prepare() === undefined) return
    await this.#armBefore(Date.now() + OPEN_MS)
  }

  override async alarm(): Promise<void> {
    if (this.#prepare() === undefined) return
    try {
      await this.look()
      this.#failures = 0
    } catch (error) {
      this.#failures++
      logEvent('keeper failure', { cause: causeOf(error) })
    } finally {
      await this.#armBefore(Date.now() + this.#pauseMs())
    }
  }

  /** One look at all open positions; a second caller joins the look under way. */
  look(): Promise<void> {
    this.#round ??= (this.#prepare()?.look() ?? Promise.resolve()).finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** What is known of a position; undefined where it was never looked at, or closed long ago. */
  find(positionId: bigint): Watched | undefined {
    const entry = this.#book.entry(positionId)
    const look = this.#book.look()
    if (entry === undefined) return undefined
    const { closedAt, token, evaluation, outcome } = entry
    const price = look?.prices[token]
    if (closedAt !== null || look === undefined || price === undefined) return { evaluation, outcome }
    const { blockNumber, at } = look
    const isOnItsWay = this.#book.sending().some(({ ids }) => ids.includes(positionId))
    return {
      evaluation: { blockNumber, price, at },
      outcome: outcome ?? (isOnItsWay ? undefined : { is: 'notReached', at }),
    }
  }

  async status(): Promise<KeeperStatus> {
    const lanes = await this.#prepare()?.lanes()
    const { blockNumber, at } = this.#book.look() ?? {}
    return {
      lastEvaluation: blockNumber === undefined || at === undefined ? undefined : { blockNumber, at },
      openPositions: this.#book.openCount(),
      pendingExits: this.#book.sending().flatMap(({ ids }) => ids).length,
      lanes: lanes ?? [],
    }
  }

  /** A wake during a look arms the alarm for sooner than an idle look would. */
  async #armBefore(time: number) {
    const armed = await this.ctx.storage.getAlarm()
    if (armed === null || armed > time) await this.ctx.storage.setAlarm(time)
  }

  #pauseMs(): number {
    if (this.#failures > 0) return Math.min(OPEN_MS * 2 ** this.#failures, LONGEST_PAUSE_MS)
    return this.#book.openCount() > 0 || this.#book.sending().length > 0 ? OPEN_MS : IDLE_MS
  }

  #prepare(): Rounds | undefined {
    if (this.#rounds) return this.#rounds
    const config = parseConfig({ ...this.env })
    const chain = config.chain && createChain(config.chain, config.trading)
    if (chain?.trading === undefined || config.keeper === undefined) return undefined
    const { keeper, respectSessions } = config
    this.#rounds = createRounds({
      chain: chain as TradingChain,
      executor: createExecutor(this.env.EXECUTOR_LANE, [keeper.key], config),
      book: this.#book,
      respectSessions,
    })
    return this.#rounds
  }
}

const causeOf = (error: unknown) =>
  error instanceof Refusal ? error.body.code : error instanceof Error ? error.name : typeof error
