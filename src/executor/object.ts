import { DurableObject } from 'cloudflare:workers'
import { type Address, getAddress, type Hex } from 'viem'
import { annotateSpan } from '../metrics/active-span.ts'
import { ignoreUnreachable, logUnexpected } from './background-errors.ts'
import type { GasBudgetStatus, GasSpend, GasUse } from './gas-budgets.ts'
import { maxGasPriceOf } from './gas-price.ts'
import {
  findIntentRecord,
  findIntentRecords,
  findSentTransaction,
  type IntentRecord,
  type SentTransaction,
} from './intent-record.ts'
import { Lane } from './lane.ts'
import { createLaneAlarm, type LaneAlarm } from './lane-alarm.ts'
import { type ForeignUse, foreignUseOf, forgetForeignUse, isBlocked, secondsOfForeignUse } from './pause-rules.ts'
import { createStateNotifier } from './publish-changes.ts'
import {
  confirmBlocks,
  needsReconciliation,
  reconcile,
  reportReorg,
  resendLost,
  resendMissing,
  suspectsReorg,
} from './reconcile.ts'
import { readmit, relay } from './relay-intent.ts'
import type { GasShortage, RelayOutcome, RelayRequest } from './relay-types.ts'
import { groupOf } from './requester.ts'
import { refusalOfFirst, sendTogether } from './send-attempt.ts'
import type { GasCost } from './simulation.ts'
import { type Journal, openJournal } from './store.ts'

/** What a quote says about gas. */
export type GasTerms = {
  budgets: GasBudgetStatus
  cost?: GasCost & { gasPriceWei: bigint; maxGasPriceWei: bigint | undefined }
}

/** What readiness reports about a lane. */
export type LaneStatus = {
  address: Address
  /** The number of pending transactions. */
  pending: number
  oldestPendingSeconds: number
  /** How many transactions the lane currently allows in flight. */
  depth: number
  /** Absent until a node has responded. */
  balanceWei?: bigint
  /** The nonce of the next transaction. Absent while no node responds or the lane waits for an older transaction. */
  nextNonce?: number
  /** Why the lane accepts no intents; absent while it does. */
  pausedFor?: 'funds' | 'shared key'
  /** Redacted words of a node that refuses the transaction for which all others have waited for long; absent without one. */
  refusal?: string
  /** What others sent with the key in the last ten minutes; absent if nothing. */
  foreignUse?: ForeignUse
}

const MAX_HEAD_AGE_MS = 2_000
/** Only whether the chain has gas for L1 is taken from this head. */
const MAX_COST_HEAD_AGE_MS = 3_600_000
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
      async records => env.EVENT_STREAMS.getByName(`${this.#started().chainId}`).publishIntents(records),
    )
    this.#journal = openJournal(ctx.storage.sql, this.#onChange)
    this.#alarm = createLaneAlarm(ctx.storage, this.#journal, {
      needsPass: () => needsReconciliation(this.#started()),
      suspectsReorg: () => this.#lane !== undefined && suspectsReorg(this.#lane),
      reconcile: () => this.#started().reconcile(),
    })
    void this.#alarm.armAfterRestart()
  }

  /**
   * Simulates, signs and sends an intent and waits for its inclusion. A digest that is in flight is joined; one that was
   * executed returns its stored outcome. The outcome is `unknown` if there is none by `respondBy` (epoch milliseconds).
   */
  async relay(request: RelayRequest, respondBy?: number): Promise<RelayOutcome> {
    const { digest, kind } = request
    annotateSpan(() => ({ digest, kind, group: groupOf(request) }))
    return relay(this.#started(), request, respondBy)
  }

  /** Returns what the lane knows about an intent; undefined if the journal does not have it, or no longer has it. */
  find(digest: Hex): IntentRecord | undefined {
    return findIntentRecord(this.#journal, this.#lane, digest)
  }

  /** Returns the same once the lane is sure that the intent's block is not gone. */
  async confirm(digest: Hex): Promise<IntentRecord | undefined> {
    if (this.#journal.intents.find(digest)?.state === 'mined') await confirmBlocks(this.#started())
    return this.find(digest)
  }

  /** Arms the alarm if it was lost. */
  async wake(): Promise<void> {
    await this.#alarm.armNext()
  }

  /** Sends transactions again that a reorg has removed, with all blocks above `ancestor`. */
  reportReorg(ancestor: number): void {
    reportReorg(this.#started(), ancestor)
  }

  /** Resends at once what a reorg has removed. Resolves when it is sent or mined, at most after a second. */
  async resendLost(): Promise<void> {
    await resendLost(this.#started())
  }

  /** Returns what the lane knows about the intent with a body; undefined unless it is in flight or was executed. */
  findBody(bodyHash: Hex, holder: { group: string; groupNonce: string }): IntentRecord | undefined {
    const digest = this.#journal.intents.digestOfBody(bodyHash, holder)
    return digest && findIntentRecord(this.#journal, this.#lane, digest)
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

  /** Charges gas that the keeper spends for agents, where there is room for it. Returns the shortage of each. */
  async spendGas(spends: readonly GasSpend[]): Promise<(GasShortage | undefined)[]> {
    const lane = this.#started()
    await lane.headWithin(MAX_COST_HEAD_AGE_MS).catch(ignoreUnreachable) // for the gas price
    return spends.map(spend => lane.gasBudgets.spend(spend))
  }

  /** Returns the remaining gas budgets, and what the request costs at the moment unless no node responds. */
  async gasTerms(use: GasUse): Promise<GasTerms> {
    const lane = this.#started()
    const cost = await lane
      .headWithin(MAX_COST_HEAD_AGE_MS)
      .then(async head => ({
        ...(await lane.gasCost(use.kind)),
        gasPriceWei: lane.gasPriceAt(head),
        maxGasPriceWei: maxGasPriceOf(use, lane.gasPrices),
      }))
      .catch(ignoreUnreachable)
    return { budgets: lane.gasBudgets.statusOf(use), ...(cost && { cost }) }
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
    const lane = this.#started()
    const journal = this.#journal
    const reading = lane.headWithin(MAX_HEAD_AGE_MS).catch(ignoreUnreachable)
    const head = await lane.withDeadline(reading, Date.now() + waitMs, () => undefined)
    if (head) lane.resumeIfFunded(head)
    const { count, oldest } = journal.attempts.pendingTotals()
    const isShared = secondsOfForeignUse(journal) > 0
    const foreignUse = foreignUseOf(journal)
    const refusal = isBlocked(journal) ? refusalOfFirst(lane) : undefined
    const canAllocate = head !== undefined && !isBlocked(journal) && lane.nextNonce >= head.nonce
    return {
      address: lane.address,
      pending: count,
      oldestPendingSeconds: oldest === undefined ? 0 : Math.floor((Date.now() - oldest) / 1000),
      depth: lane.inFlightLimit.depth(),
      ...(lane.head && { balanceWei: lane.head.balance }),
      ...(canAllocate && { nextNonce: lane.nextNonce }),
      ...(lane.lacksFunds && { pausedFor: 'funds' as const }),
      ...(isShared && { pausedFor: 'shared key' as const }),
      ...(refusal !== undefined && { refusal }),
      ...(foreignUse && { foreignUse }),
    }
  }

  /** Ends the pause after others used the key. Returns whether the lane was paused. */
  resume(): boolean {
    return forgetForeignUse(this.#journal)
  }

  override async alarm(): Promise<void> {
    this.#started()
    return this.#alarm.run()
  }

  /** Returns the lane's parts. The first call after a start creates them and resumes what the journal has in flight. */
  #started(): Lane {
    if (this.#lane) return this.#lane
    const address = this.#address()
    if (address === undefined) throw new Error('A lane is named by its executor address')
    this.#journal.set('address', address)
    const lane = new Lane(
      {
        address,
        env: this.env,
        journal: this.#journal,
        alarm: this.#alarm,
        sync: () => this.ctx.storage.sync(),
        onReceived: this.#onChange,
      },
      { reconcile, resendMissing, sendTogether },
    )
    this.#lane = lane
    if (readmit(lane)) lane.reconcile().catch(logUnexpected)
    return lane
  }

  #address(): Address | undefined {
    const name = this.ctx.id.name ?? this.#journal.get('address')
    return name === undefined ? undefined : getAddress(name)
  }
}
