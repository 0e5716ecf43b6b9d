import { DurableObject } from 'cloudflare:workers'
import { type Address, getAddress, type Hex } from 'viem'
import { annotateSpan } from '../metrics/active-span.ts'
import { assembleLane, type Lane } from './assemble-lane.ts'
import { logUnexpected } from './background-errors.ts'
import { findIntentRecord, findIntentRecords, findSentTransaction, type SentTransaction } from './find-in-lane.ts'
import type { GasBudgetStatus, GasUse } from './gas-budgets.ts'
import type { IntentRecord } from './intent-record.ts'
import { createLaneAlarm, type LaneAlarm } from './lane-alarm.ts'
import { type LaneStatus, laneStatusOf } from './lane-status.ts'
import { createStateNotifier } from './publish-changed-intents.ts'
import type { RelayOutcome, RelayRequest } from './relay-types.ts'
import { type Journal, openJournal } from './store.ts'

/** Longer than a request to the nodes can take. */
const MAX_STATUS_WAIT_MS = 30_000

/**
 * The lane of one executor account, which alone assigns the account's nonces. It is named by the account's address and
 * finds the key in the environment.
 */
export class ExecutorLaneObject extends DurableObject<Env> {
  readonly #journal: Journal
  readonly #alarm: LaneAlarm
  readonly #onChange: (digest: Hex) => void
  #lane: Lane | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#onChange = createStateNotifier(
      digests => findIntentRecords(this.#journal, this.#lane, digests),
      records => this.notify(records),
    )
    this.#journal = openJournal(ctx.storage.sql, this.#onChange)
    this.#alarm = createLaneAlarm(ctx.storage, this.#journal)
  }

  /** Called with the current records of intents whose state has changed. */
  protected async notify(_records: IntentRecord[]): Promise<void> {}

  /**
   * Simulates, signs and sends an intent and waits for its inclusion. A digest that is in flight is joined; one that was
   * executed returns its stored outcome. The outcome is `unknown` if there is none by `respondBy` (epoch milliseconds).
   */
  async relay(request: RelayRequest, respondBy?: number): Promise<RelayOutcome> {
    const { digest, kind, group } = request
    annotateSpan(() => ({ digest, kind, group }))
    return this.#started().intake.relay(request, respondBy)
  }

  /** Returns what the lane knows about an intent; undefined if the journal does not have it, or no longer has it. */
  find(digest: Hex): IntentRecord | undefined {
    return findIntentRecord(this.#journal, this.#lane, digest)
  }

  /** Returns a transaction that the lane signed. */
  findTransaction(hash: Hex): SentTransaction | undefined {
    const from = this.#address()
    return from && findSentTransaction(this.#journal, hash, from)
  }

  /** Returns the remaining gas budgets that a request would use. */
  gasBudgets(use: GasUse): GasBudgetStatus {
    return this.#started().gasBudgets.statusOf(use)
  }

  /** Grants one price refresh per interval to all callers together. Returns whether this call got it. */
  takePriceRefresh(intervalMs: number): boolean {
    const last = Number(this.#journal.get('price refresh') ?? 0)
    if (Date.now() - last < intervalMs) return false
    this.#journal.set('price refresh', `${Date.now()}`)
    return true
  }

  /** Waits at most `waitMs` for a node; without a response, the status comes from the journal alone. */
  async status(waitMs = MAX_STATUS_WAIT_MS): Promise<LaneStatus> {
    return laneStatusOf(this.#started(), this.#journal, waitMs)
  }

  override alarm(): Promise<void> {
    return this.#alarm.run(
      async () => this.#started().reconcile(),
      () => this.#lane?.heads.last()?.number,
    )
  }

  /** Returns the lane's parts. The first call after a start creates them and resumes what the journal has in flight. */
  #started(): Lane {
    if (this.#lane) return this.#lane
    const address = this.#address()
    if (address === undefined) throw new Error('A lane is named by its executor address')
    this.#journal.set('address', address)
    const lane = assembleLane({
      address,
      env: this.env,
      journal: this.#journal,
      alarm: this.#alarm,
      sync: () => this.ctx.storage.sync(),
      onReceived: this.#onChange,
    })
    this.#lane = lane
    const isInFlight = lane.intake.readmit()
    // The alarm of a process that was killed may be lost.
    if (isInFlight || this.#journal.attempts.hasWatched()) void this.#alarm.armAfterRestart()
    if (isInFlight) lane.reconcile().catch(logUnexpected)
    return lane
  }

  #address(): Address | undefined {
    const name = this.ctx.id.name ?? this.#journal.get('address')
    return name === undefined ? undefined : getAddress(name)
  }
}
