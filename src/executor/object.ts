import { DurableObject } from 'cloudflare:workers'
import { type Address, getAddress, type Hex } from 'viem'
import { annotateSpan } from '../metrics/active-span.ts'
import { ignoreUnreachable, logUnexpected } from '../rpc/node-errors.ts'
import type { GasBudgetStatus, GasSpend, GasUse } from './gas-budgets.ts'
import { maxGasPriceOf, priceWithL1, weightOfGas } from './gas-price.ts'
import {
  findIntentRecord,
  findIntentRecords,
  findSentTransaction,
  type IntentRecord,
  type SentTransaction,
} from './intent-record.ts'
import type { OnChange } from './intent-table.ts'
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
import type { GasShortage, IntentKind, RelayOutcome, RelayRequest } from './relay-types.ts'
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
  /**
   * What gas of an opening costs, relative to the ceiling of the operator; absent without a ceiling or a response of a
   * node.
   */
  gasPriceRatio?: number
  /**
   * Redacted words of a node that refuses the transaction for which all others have waited for long; absent without
   * one.
   */
  refusal?: string
  /** What others sent with the key in the last ten minutes; absent if nothing. */
  foreignUse?: ForeignUse
}

const MAX_HEAD_AGE_MS = 2_000
/** How old a gas price may be, in a quote and for the keeper: as old as for a transaction. */
const MAX_PRICE_AGE_MS = 10_000
/** Longer than a request to the nodes can take. */
const MAX_STATUS_WAIT_MS = 30_000

/**
 * Reads what a typical transaction of a kind costs, and what one gas does without the data on L1. Throws
 * CHAIN_UNREACHABLE.
 */
async function priceOf(lane: Lane, kind: IntentKind = 'order') {
  const head = await lane.headWithin(MAX_PRICE_AGE_MS)
  return { ...(await lane.gasCost(kind)), gasPriceWei: lane.gasPriceAt(head) }
}

/**
 * The lane of one executor account, which alone assigns the account's nonces. It is named by the account's address and
 * finds the key in the environment.
 */
export class ExecutorLaneObject extends DurableObject<Env> {
  readonly #journal: Journal
  readonly #alarm: LaneAlarm
  readonly #onChange: OnChange
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
   * Simulates, signs and sends an intent and waits for its inclusion. A digest that is in flight is joined; one that
   * was executed returns its stored outcome. The outcome is `unknown` if there is none by `respondBy` (epoch
   * milliseconds).
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
    const price = await priceOf(lane).catch(ignoreUnreachable)
    return spends.map(spend =>
      lane.gasBudgets.spend(
        spend,
        price && weightOfGas(priceWithL1(price.gasPriceWei, { l2Gas: spend.gas, l1Gas: price.l1Gas }), lane.gasPrices),
      ),
    )
  }

  /** Returns the remaining gas budgets, and what the request costs at the moment unless no node responds. */
  async gasTerms(use: GasUse): Promise<GasTerms> {
    const lane = this.#started()
    const cost = await priceOf(lane, use.kind).catch(ignoreUnreachable)
    return {
      budgets: lane.gasBudgets.statusOf(use),
      ...(cost && {
        cost: {
          ...cost,
          gasPriceWei: priceWithL1(cost.gasPriceWei, cost),
          maxGasPriceWei: maxGasPriceOf(use, lane.gasPrices),
        },
      }),
    }
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
    const reading = Promise.all([lane.headWithin(MAX_HEAD_AGE_MS), priceOf(lane, 'open')]).catch(ignoreUnreachable)
    const read = await lane.withDeadline(reading, Date.now() + waitMs, () => undefined)
    const [head, cost] = read ?? []
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
      ...(cost &&
        lane.gasPrices && {
          gasPriceRatio: Number(priceWithL1(cost.gasPriceWei, cost)) / Number(lane.gasPrices.maxWei),
        }),
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
        onChange: this.#onChange,
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
