import { DurableObject } from 'cloudflare:workers'
import { getAddress, type Hex } from 'viem'
import { logEvent } from '../log.ts'
import { withDeadline } from '../timeout.ts'
import type { Ticket } from './admission.ts'
import { assemble, type Parts } from './assemble-lane.ts'
import type { Head } from './chain-head.ts'
import { ignoreUnreachable } from './delivery.ts'
import type { IntentKind, IntentRecord, LaneStatus, RelayOutcome, RelayRequest, SentTransaction } from './intent.ts'
import { findSentTransaction, toIntentRecord, toReceivedRecord } from './intent-record.ts'
import type { JournalIntent } from './intent-table.ts'
import { logUnexpected } from './log-failure.ts'
import { createTelling } from './state-notifier.ts'
import { type Journal, openJournal } from './store.ts'

/** A head this old is too old to price a transaction and to know the balance. */
const HEAD_MS = 10_000
const FRESH_HEAD_MS = 1_000
/** While the oldest transaction is open for longer than this, nothing more is taken in. */
const CLOGGED_MS = 5_000
const ALARM_MS = 1_000
/** What was in flight at a restart is mined a block later: the second look comes this soon. */
const WAKING_MS = 300
const WATCH_MS = 2_000
const LONGEST_WATCH_MS = 60_000
const PRUNING_MS = 60_000
/** A group whose transactions reverted this often in this time waits, for every revert costs gas. */
const REVERT_BUDGET = { count: 3, windowMs: 600_000 }
/** An account that others used this often in this time has a key that is not ours alone. */
const FOREIGN_LIMIT = { count: 2, windowMs: 600_000 }
/** Kinds that nobody but the service itself asks for. */
const ownKinds: readonly IntentKind[] = ['prices', 'exit', 'settle']
/** A paused lane resumes when its balance covers what it lacked this many times. */
const RESUME_FACTOR = 2n
/** What a lane that lacks funds for an unknown amount of gas is assumed to need. */
const TYPICAL_GAS = 500_000n

/**
 * The lane of one executor account: it alone allocates the account's nonces. Named by the account's address; the key
 * comes from the environment. The class is the door; the work is in the parts around it.
 */
export class ExecutorLane extends DurableObject<Env> {
  readonly #journal: Journal
  readonly #changed: (digest: Hex) => void
  #parts: Parts | undefined
  readonly #running = new Map<Hex, { relay: RelayRequest; outcome: Promise<RelayOutcome>; since: number }>()
  /** The digest that holds a group's nonce while it has no row yet. */
  readonly #claims = new Map<string, Hex>()
  /** Wei that the account lacked when the lane paused. */
  #lacking: bigint | undefined
  #alarmAt: number | undefined
  #watchMs = WATCH_MS
  /** The head at the last look after transactions that are not final. */
  #watchedAt: number | undefined
  #prunedAt = 0

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const changed = createTelling(
      digest => this.find(digest),
      records => this.tell(records),
    )
    this.#changed = changed
    this.#journal = openJournal(ctx.storage.sql, changed)
  }

  /** Told of the intents whose state has changed, a moment later and many at once. */
  protected async tell(_records: IntentRecord[]): Promise<void> {}

  /** Simulates, signs, sends and waits for the inclusion. The same digest joins the run under way, or gets its stored outcome. */
  relay(relay: RelayRequest): Promise<RelayOutcome> {
    const running = this.#running.get(relay.digest)
    if (running) return running.outcome
    const outcome = this.#run(relay).finally(() => this.#running.delete(relay.digest))
    this.#running.set(relay.digest, { relay, outcome, since: Date.now() })
    this.#changed(relay.digest)
    return outcome
  }

  /** The life of an intent, or undefined when the lane does not know it (any more). */
  find(digest: Hex): IntentRecord | undefined {
    const intent = this.#journal.intents.find(digest)
    const running = this.#running.get(digest)
    if (running && (intent === undefined || isRetryable(intent)))
      return toReceivedRecord(running.relay, running.since, intent)
    if (intent === undefined) return undefined
    const attempts = this.#journal.attempts.ofIntent(digest)
    const isSent = intent.state === 'prepared' && attempts.some(({ hash }) => this.#parts?.delivery.isOnTheWay(hash))
    return toIntentRecord(isSent ? { ...intent, state: 'sent' } : intent, attempts)
  }

  /** A transaction of this lane, or undefined. */
  findTransaction(hash: Hex): SentTransaction | undefined {
    const from = this.ctx.id.name ?? this.#journal.get('address')
    return from === undefined ? undefined : findSentTransaction(this.#journal, hash, getAddress(from))
  }

  async status(): Promise<LaneStatus> {
    const { account, admission, sequencer } = this.#wake()
    const head = await sequencer.headWithin(2 * FRESH_HEAD_MS).catch(ignoreUnreachable)
    if (head) this.#resumeAt(head)
    const { count, oldest } = this.#journal.attempts.pendingTotals()
    const balance = sequencer.lastHead()?.balance
    return {
      address: account.address,
      pending: count,
      oldestPendingSeconds: oldest === undefined ? 0 : Math.floor((Date.now() - oldest) / 1000),
      depth: admission.depth(),
      ...(balance !== undefined && { balanceWei: balance }),
      ...(this.#lacking !== undefined && { pausedFor: 'funds' as const }),
      ...(this.#secondsOfForeignUse() > 0 && { pausedFor: 'shared key' as const }),
    }
  }

  /** Reconciles while anything is open, watches until it is final, then sleeps until rows can be reclaimed. */
  override async alarm(): Promise<void> {
    this.#alarmAt = undefined
    try {
      await this.#wake().reconciliation.reconcile()
      this.#prune()
    } catch (error) {
      logUnexpected(error)
    } finally {
      await this.#armNext()
    }
  }

  async #run(relay: RelayRequest): Promise<RelayOutcome> {
    const { admission, inclusion, inclusionTimeoutMs } = this.#wake()
    const until = Date.now() + inclusionTimeoutMs
    const known = this.#journal.intents.find(relay.digest)
    if (known && !isRetryable(known)) return this.#resume(known, until)

    const claim = `${relay.group} ${relay.groupNonce}`
    const holder = this.#claims.get(claim) ?? this.#journal.intents.holderOf(relay.group, relay.groupNonce)
    if (holder !== undefined && holder !== relay.digest) return { state: 'conflict', digest: holder }
    const foreign = this.#secondsOfForeignUse()
    if (foreign > 0) return { state: 'paused', retryAfterSeconds: foreign }
    const wait = this.#secondsOfRevertBudget(relay)
    if (wait > 0) return { state: 'busy', retryAfterSeconds: wait, why: 'reverts' }
    const oldest = this.#journal.attempts.lowestPendingSince()
    const isClogged = oldest !== undefined && Date.now() - oldest > CLOGGED_MS
    const ticket = isClogged ? undefined : admission.enter(relay.group)
    if (ticket === undefined) return { state: 'busy', retryAfterSeconds: 1 }

    this.#claims.set(claim, relay.digest)
    let isFlying = false
    try {
      const result = await this.#launch(relay, ticket, until)
      if (result !== 'flying') return known?.state === 'reverted' ? inclusion.answer(known) : result
      isFlying = true
      const outcome = inclusion.outcomeOf(relay.digest)
      void outcome.finally(ticket.leave)
      return await this.#inTime(relay.digest, outcome, until)
    } finally {
      this.#claims.delete(claim)
      if (!isFlying) ticket.leave()
    }
  }

  /** Takes an intent from admission to the air; answers why not where the chain or the account says no. */
  async #launch(relay: RelayRequest, ticket: Ticket, until: number): Promise<RelayOutcome | 'flying'> {
    const { sequencer, simulate, delivery } = this.#wake()
    if (!(await ticket.turn(until)) || !(await ticket.room(until))) return { state: 'busy', retryAfterSeconds: 1 }
    const head = await sequencer
      .headWithin(this.#lacking === undefined ? HEAD_MS : FRESH_HEAD_MS)
      .catch(ignoreUnreachable)
    if (head === undefined) return { state: 'unsent' }
    this.#resumeAt(head)
    if (this.#lacking !== undefined) return { state: 'unfunded' }

    const fees = sequencer.feesAt(head)
    const verdict = await simulate(relay.kind, relay.call, fees)
    if (verdict.is === 'unreachable') return { state: 'unsent' }
    if (verdict.is === 'unfunded') {
      this.#pause(fees.maxFeePerGas * TYPICAL_GAS)
      return { state: 'unfunded' }
    }
    if (verdict.is === 'refused') {
      const { data, message } = verdict
      // A revert stays the answer until another try succeeds.
      if (this.#journal.intents.find(relay.digest)?.state !== 'reverted')
        this.#journal.intents.reject(relay, { data, reason: message })
      await this.#armBefore(Date.now() + LONGEST_WATCH_MS)
      return { state: 'rejected', message, ...(data !== undefined && { data }) }
    }
    const cost = BigInt(verdict.gas) * fees.maxFeePerGas
    if (head.balance < this.#journal.attempts.pendingTotals().cost + cost) {
      const now = await sequencer.refresh().catch(ignoreUnreachable)
      if (now === undefined) return { state: 'unsent' }
      if (now.balance < this.#journal.attempts.pendingTotals().cost + cost) {
        this.#pause(cost)
        return { state: 'unfunded' }
      }
    }
    const attempt = await sequencer.prepare(relay, verdict.gas)
    this.#watchMs = WATCH_MS
    void this.#armBefore(Date.now() + ALARM_MS)
    delivery.deliver(attempt).catch(logUnexpected)
    return 'flying'
  }

  /** What became of an intent that was signed before: its outcome when it has one, or the wait for it. */
  async #resume(known: JournalIntent, until: number): Promise<RelayOutcome> {
    const { inclusion, reconciliation } = this.#wake()
    if (known.state === 'mined' || known.state === 'final') return inclusion.answer(known)
    const outcome = inclusion.outcomeOf(known.digest)
    reconciliation.reconcile().catch(logUnexpected)
    return this.#inTime(known.digest, outcome, until)
  }

  #inTime(digest: Hex, outcome: Promise<RelayOutcome>, until: number): Promise<RelayOutcome> {
    return withDeadline(outcome, until, (): RelayOutcome => {
      const hash = this.#journal.attempts.ofIntent(digest).at(-1)?.hash
      return { state: 'unknown', ...(hash !== undefined && { hash }) }
    })
  }

  #secondsOfRevertBudget({ kind, group }: RelayRequest): number {
    if (ownKinds.includes(kind)) return 0
    const reverts = this.#journal.attempts.revertsSince(group, Date.now() - REVERT_BUDGET.windowMs)
    const oldest = reverts[REVERT_BUDGET.count - 1]
    return oldest === undefined ? 0 : Math.ceil((oldest + REVERT_BUDGET.windowMs - Date.now()) / 1000)
  }

  /** How long nothing is taken in because others use the account's key; it is theirs to outrun us as long as they do. */
  #secondsOfForeignUse(): number {
    const times = this.#foreignUses()
    const first = times.at(-FOREIGN_LIMIT.count)
    return first === undefined ? 0 : Math.ceil((first + FOREIGN_LIMIT.windowMs - Date.now()) / 1000)
  }

  #foreignUses(): number[] {
    const times: number[] = JSON.parse(this.#journal.get('foreign') ?? '[]')
    return times.filter(time => time > Date.now() - FOREIGN_LIMIT.windowMs)
  }

  #prune() {
    const now = Date.now()
    if (now - this.#prunedAt < PRUNING_MS) return
    this.#prunedAt = now
    this.#journal.prune()
  }

  #pause(cost: bigint) {
    if (this.#lacking === undefined) logEvent('executor out of funds', { lackingWei: `${cost}` })
    this.#lacking = cost
    this.#parts?.sequencer.expire() // the balance that was known is not the account's any more
  }

  #resumeAt({ balance }: Head) {
    if (this.#lacking !== undefined && balance >= this.#lacking * RESUME_FACTOR) this.#lacking = undefined
  }

  /** Builds the parts on the first event after a start, and takes up what the journal says is unfinished. */
  #wake(): Parts {
    if (this.#parts) return this.#parts
    const name = this.ctx.id.name ?? this.#journal.get('address')
    if (name === undefined) throw new Error('A lane is named by its executor address')
    const address = getAddress(name)
    this.#journal.set('address', address)
    const parts = assemble(address, this.env, this.#journal, {
      sync: () => this.ctx.storage.sync(),
      onUnfunded: cost => this.#pause(cost),
      onForeign: () => this.#journal.set('foreign', JSON.stringify([...this.#foreignUses(), Date.now()])),
    })
    this.#parts = parts
    const unsettled = this.#journal.intents.unsettled()
    for (const { digest, group } of unsettled) {
      const ticket = parts.admission.enter(group)
      if (ticket) void parts.inclusion.outcomeOf(digest).finally(ticket.leave)
    }
    if (unsettled.length > 0) {
      void this.#armBefore(Date.now() + WAKING_MS)
      parts.reconciliation.reconcile().catch(logUnexpected)
    }
    return parts
  }

  async #armBefore(time: number) {
    if (this.#alarmAt !== undefined && this.#alarmAt <= time) return
    this.#alarmAt = time
    await this.ctx.storage.setAlarm(time)
  }

  async #armNext() {
    const now = Date.now()
    if (this.#journal.attempts.pendingTotals().count > 0 || this.#journal.intents.withoutPendingAttempt().length > 0)
      return this.#armBefore(now + ALARM_MS)
    if (this.#journal.attempts.hasWatched()) {
      // A chain that makes no blocks makes nothing final: ask it ever less often.
      const number = this.#parts?.sequencer.lastHead()?.number
      this.#watchMs = number === this.#watchedAt ? Math.min(this.#watchMs * 2, LONGEST_WATCH_MS) : WATCH_MS
      this.#watchedAt = number
      return this.#armBefore(now + this.#watchMs)
    }
    const pruning = this.#journal.intents.nextPruneAt()
    if (pruning !== undefined) await this.#armBefore(Math.max(pruning * 1000, now + LONGEST_WATCH_MS))
  }
}

/** An intent of which nothing was executed and nothing is open. */
const isRetryable = ({ state }: JournalIntent) => state === 'rejected' || state === 'reverted'
