import { encodeWithPrices } from '@agent-trading-service/protocol/carried-prices'
import type { Address, Hex } from 'viem'
import { createSharedReads } from '../chain/combine-concurrent-reads.ts'
import type { TransactionFees } from '../chain/transaction-fees.ts'
import { createSharedDeadlines, singleFlight, singleFlightAgain } from '../concurrency.ts'
import { type GasPrices, parseConfig } from '../config/config.ts'
import { logEvent } from '../log.ts'
import { createPriceReports, type PriceReports } from '../price-providers/data-streams.ts'
import { createBatcher } from '../rpc/batcher.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import type { Submission } from '../rpc/submit.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import { type ChainHead, feesAt, readPlausibleHead } from './chain-head.ts'
import { createGasBudgets, type GasBudgets } from './gas-budgets.ts'
import { weightOfGas } from './gas-price.ts'
import { createInFlightLimit } from './in-flight-limit.ts'
import type { AdmittedRequest, OnChange } from './intent-table.ts'
import type { L1Gas } from './l1-gas.ts'
import type { LaneAlarm } from './lane-alarm.ts'
import {
  describeForeignTransaction,
  type ForeignTransaction,
  findNonceUse,
  hasReverted,
  isRestored,
  recordForeignTransactions,
} from './pause-rules.ts'
import { createReceiptForwarder } from './publish-changes.ts'
import { type Call, EXIT_KINDS, type IntentKind, type RelayOutcome, type RelayRequest } from './relay-types.ts'
import { createRevertCounter, MAX_REVERT_AGE_MS, type RevertCounter } from './revert-counter.ts'
import { accountNames, addressOfKey, type SigningAccount, signingAccountOf } from './signing-account.ts'
import { createSimulator, type GasCost, type Simulate } from './simulation.ts'
import type { Journal } from './store.ts'

/** What the lane gets from its Durable Object. */
type LaneObject = {
  address: Address
  env: Env
  journal: Journal
  alarm: LaneAlarm
  /** Resolves when all writes so far are durable. */
  sync: () => Promise<void>
  /** Called with every new request too. */
  onChange: OnChange
}

/** The parts that run one at a time for the whole lane. Parts import the lane, so it gets these as arguments. */
type LaneParts = {
  /** Compares the journal with the chain. Throws CHAIN_UNREACHABLE. */
  reconcile: (lane: Lane) => Promise<void>
  /** Resends what the chain lacks. */
  resendMissing: (lane: Lane) => Promise<void>
  /** Sends attempts for the first time. */
  sendTogether: (lane: Lane, waiting: WaitingAttempt[]) => Promise<void>
}

/** A request that the lane is working on. `receivedAt` is in milliseconds. */
export type OpenRequest = { request: RelayRequest; receivedAt: number; outcome: Promise<RelayOutcome> }
/** A request that waits for its nonce. */
export type UnsignedRequest = {
  request: AdmittedRequest
  /** The request's call with the prices that it brings along. */
  call: Call
  gas: number
  prepared: PromiseWithResolvers<Attempt>
}
/** An attempt that waits for its first send. The deadline is in epoch milliseconds. */
export type WaitingAttempt = { attempt: Attempt; deadline: number; submission: PromiseWithResolvers<Submission> }

const MIN_PASS_INTERVAL_MS = 100
const ALERT_INTERVAL_MS = 600_000
/** The gas of a typical transaction, to estimate how many the balance pays for. */
const TYPICAL_GAS = 500_000n
/** With fewer transactions left, the operator should fund the account. */
const MIN_TRANSACTIONS_LEFT = 100n
/** How long a block that the lane has seen bounds its simulations. Nodes that are behind catch up sooner. */
const BLOCK_MEMORY_MS = 10_000
/** A lane without funds resumes once its balance is this many times the cost it could not pay. */
const RESUME_FACTOR = 2n

/**
 * The state of one executor account. What must survive is in the journal; everything else is in these fields. Each part
 * of the lane is a function that takes it; relay-intent.ts tells in which order an intent meets them.
 */
export class Lane {
  readonly address: Address
  readonly chainId: number
  readonly makesBlocksOnDemand: boolean
  readonly account: SigningAccount
  /** The account's name in metrics. */
  readonly accountName: string
  readonly journal: Journal
  readonly alarm: LaneAlarm
  readonly rpc: RpcTransport
  readonly gasBudgets: GasBudgets
  readonly gasPrices: GasPrices | undefined
  readonly reverts: RevertCounter
  readonly inFlightLimit = createInFlightLimit()
  readonly simulate: Simulate
  readonly gasCost: (kind: IntentKind) => Promise<GasCost>
  readonly l1Gas: L1Gas
  readonly reports: PriceReports
  readonly sync: () => Promise<void>
  readonly onChange: OnChange
  readonly forwardLogs: ReturnType<typeof createReceiptForwarder>
  readonly storeNotes: ReturnType<typeof createNoteStore>
  readonly inclusionTimeoutMs: number
  /** One timer ends all waits. */
  readonly withDeadline = createSharedDeadlines()

  /** Runs a pass of reconciliation, or another one after the pass that runs. Throws CHAIN_UNREACHABLE. */
  readonly reconcile: () => Promise<void>
  /** Resends in the background what the chain lacks at the last head. */
  readonly resendMissing: () => Promise<void>
  /**
   * Lets the relayer's lane resend first what a reorg has removed: without its registration, an agent's call reverts.
   */
  readonly resendRegistrations: () => Promise<void>
  /** Sends an attempt for the first time, together with others. */
  readonly sendFirst: (waiting: WaitingAttempt) => void
  /** Reads the head and adopts it; a call during a read joins it. Throws CHAIN_UNREACHABLE. */
  readonly refreshHead = singleFlight(() => this.#readHead())

  /** Whether fees follow what the nodes suggest: since a refusal, until they suggest no more than is configured. */
  #followsSuggestion = false
  /** The last head that was read. */
  head: ChainHead | undefined
  /** The account's next nonce; 0 if the lane knows none. */
  nextNonce: number
  /** A nonce above the lane's own, which no transaction of the lane explains, until a later block confirms it. */
  #foreignNonces: { from: number; to: number; atBlock: number } | undefined
  /** The newest block that the lane has seen, and when it saw it first (milliseconds). */
  #newestBlock = { number: 0n, at: 0 }
  /** The cost in wei that the account could not pay; undefined while it has funds. */
  #unpaidCost: bigint | undefined
  readonly #alertedAt = new Map<string, number>()

  /** When the process took up the journal (epoch milliseconds). */
  readonly startedAt = Date.now()

  // relay-intent.ts
  readonly open = new Map<Hex, OpenRequest>()
  /** The digest that holds a group's nonce until its row is written. */
  readonly nonceHolders = new Map<string, Hex>()

  // sign-attempt.ts
  readonly unsigned: UnsignedRequest[] = []
  isSigning = false

  // send-attempt.ts
  /** The attempts with an open request to a node. */
  readonly beingSent = new Set<Hex>()
  /** The pending attempts that a node refused at their last send, how often it did, and its words. */
  readonly refusals = new Map<Hex, { times: number; message: string }>()
  /** How many sends wait for their block. */
  waitsForBlock = 0

  // inclusion-watch.ts
  readonly watched = new Map<Hex, { attempt: Attempt; deadline: number; ended: PromiseWithResolvers<void> }>()
  isWatching = false
  /** How long after its send an attempt is looked for first, in milliseconds. */
  expectedInclusionMs = 100
  /** The newest block whose receipts were read. */
  lastBlockRead: number | undefined
  supportsBlockReceipts = true
  /** A block that was not read yet, and the promise that the watch awaits. */
  newBlock: number | undefined
  newBlockSignal = Promise.withResolvers<void>()

  // intent-outcomes.ts
  readonly waiters = new Map<Hex, PromiseWithResolvers<RelayOutcome>>()

  // reconcile.ts
  /** The highest block whose hash is confirmed, together with every block below it. */
  checkpoint: { number: number; hash: Hex } | undefined
  /** Since when the head is below a block of the journal (epoch milliseconds); 0 if a reorg explains it. */
  belowSince: number | undefined
  /** When a reorg was last reported that may have removed transactions of the lane (epoch milliseconds). */
  reorgReportedAt = 0
  /** Whether a reorg took something back that was not resent since. */
  hasTakenBack = false
  /** Used nonces without our receipt, and the head time (Unix seconds) after which a pass finds out who used them. */
  readonly suspects = new Map<number, number>()
  /** When and how often attempts were resent, and the head at the first time. */
  readonly resends = new Map<Hex, { at: number; times: number; firstHead?: number }>()
  /** Nonce and balance at the last pass. After a change a node may accept a transaction that it rejected before. */
  accountState = ''

  readonly #priorityFeeWei: bigint
  readonly #oracle: Address

  /** Throws if no chain is configured, or no key for the address. */
  constructor({ address, env, journal, alarm, sync, onChange }: LaneObject, parts: LaneParts) {
    const variables: Partial<Record<string, unknown>> = { ...env }
    const config = parseConfig(variables)
    const { chain } = config
    if (chain === undefined) throw new Error('A lane needs CHAIN_ID, RPC_URL and CONTRACTS')
    this.address = address
    this.account = signingAccountOf(address, chain.id, variables)
    this.accountName = accountNames(config).get(address) ?? 'unknown'
    this.journal = journal
    this.alarm = alarm
    this.sync = sync
    this.onChange = onChange
    this.inclusionTimeoutMs = config.inclusionTimeoutMs
    this.chainId = chain.id
    this.#priorityFeeWei = config.priorityFeeWei
    this.#oracle = chain.contracts.PriceOracle
    const { id: chainId, makesBlocksOnDemand } = chain
    this.makesBlocksOnDemand = makesBlocksOnDemand
    this.rpc = createTransport(chain.rpcUrls, { within: createSharedDeadlines(), chainId, makesBlocksOnDemand })
    const { simulate, gasCost, l1Gas } = createSimulator(this.rpc, address, () => this.head?.isArbitrum === true)
    this.simulate = simulate
    this.gasCost = gasCost
    this.l1Gas = l1Gas
    this.reports = createPriceReports(config.dataStreams, createSharedReads)
    this.reverts = createRevertCounter(journal.attempts.revertsSince(Date.now() - MAX_REVERT_AGE_MS))
    this.gasPrices = config.gasPrices
    this.gasBudgets = createGasBudgets(journal.gasLevels, config.gasBudgets, {
      hasReverted: party => hasReverted(this.reverts, party),
      maxWeight: config.gasPrices ? weightOfGas(config.gasPrices.maxWei, config.gasPrices) : Number.POSITIVE_INFINITY,
      weight: () => (this.head === undefined ? 1 : weightOfGas(this.gasPriceAt(this.head), this.gasPrices)),
    })
    this.forwardLogs = createReceiptForwarder(env.HISTORY_INDEXER, chain.id)
    this.storeNotes = createNoteStore(env.HISTORY)
    this.nextNonce = Math.max(journal.attempts.highestNonce() + 1, Number(journal.get('nonce') ?? 0))
    this.reconcile = singleFlightAgain(() => parts.reconcile(this), MIN_PASS_INTERVAL_MS)
    this.resendMissing = singleFlightAgain(() => parts.resendMissing(this), MIN_PASS_INTERVAL_MS)
    const relayer = config.relayerKey && addressOfKey(config.relayerKey)
    this.resendRegistrations = async () => {
      if (relayer !== undefined && relayer !== address) await env.EXECUTOR_LANE.getByName(relayer).resendLost()
    }
    this.sendFirst = createBatcher(waiting => parts.sendTogether(this, waiting), Number.POSITIVE_INFINITY)
  }

  /** Returns a head that is at most this old. Throws CHAIN_UNREACHABLE. */
  async headWithin(maxAgeMs: number): Promise<ChainHead> {
    return this.head !== undefined && Date.now() - this.head.readAt <= maxAgeMs ? this.head : this.refreshHead()
  }

  async #readHead(): Promise<ChainHead> {
    const head = await readPlausibleHead(this.rpc, {
      address: this.address,
      chainId: this.chainId,
      nextNonce: this.head === undefined && isRestored(this.journal) ? 0 : this.nextNonce,
      needsSuggestion: this.#followsSuggestion,
      onImplausibleNonce: nonce => {
        if (this.isAlertDue('nonce')) logEvent('implausible nonce', { executor: this.address, nonce })
      },
    })
    if (head.suggestedPriorityFee !== undefined)
      this.#followsSuggestion = head.suggestedPriorityFee > this.#priorityFeeWei
    this.#detectForeignTransactions(head)
    this.nextNonce = Math.max(this.nextNonce, head.nonce)
    this.#alertOfLowBalance(head)
    this.head = head
    this.observeBlock(BigInt(head.number))
    if (this.belowSince === undefined && head.number < this.journal.attempts.newestWatchedBlock()) {
      this.belowSince = Date.now()
      void this.alarm.passOften()
    }
    return head
  }

  /**
   * Detects foreign transactions while the lane has none of its own pending: then only the account's nonce shows them.
   * A nonce above the lane's own counts once a later block shows it too.
   */
  #detectForeignTransactions({ nonce, number }: ChainHead) {
    if (isRestored(this.journal)) return this.journal.setNextNonce(nonce)
    const { nextNonce } = this
    // After a reorg, or if a node was wrong.
    if (this.#foreignNonces && nonce < this.#foreignNonces.to) this.#foreignNonces = undefined
    if (this.#foreignNonces && number > this.#foreignNonces.atBlock) {
      const { from, to } = this.#foreignNonces
      this.#foreignNonces = undefined
      recordForeignTransactions(this.journal, from, to - from)
      this.journal.setNextNonce(to) // persisted, so that a restart does not count them again
      logEvent('foreign transaction', { executor: this.address, nonce: from, count: to - from })
      this.#identifyForeignTransaction(to - 1, number)
    }
    if (nextNonce > 0 && nonce > nextNonce)
      this.#foreignNonces = { from: this.#foreignNonces?.from ?? nextNonce, to: nonce, atBlock: number }
  }

  /** Finds out in the background what a foreign transaction was. */
  #identifyForeignTransaction(nonce: number, head: number): void {
    const { address } = this
    void findNonceUse(this.rpc, { address, nonce, head })
      .then(found => found && this.describeForeignTransaction(nonce, found))
      .catch(logUnexpected)
  }

  /** Records what a foreign transaction was, so that the operator sees whose it is. */
  describeForeignTransaction(nonce: number, found: ForeignTransaction): void {
    describeForeignTransaction(this.journal, nonce, found)
    logEvent('foreign transaction found', {
      executor: this.address,
      nonce,
      hash: found.hash,
      to: found.to ?? 'none',
    })
  }

  #alertOfLowBalance(head: ChainHead) {
    const transactionsLeft = head.balance / (TYPICAL_GAS * this.feesAt(head).maxFeePerGas)
    if (transactionsLeft < MIN_TRANSACTIONS_LEFT && this.isAlertDue('balance'))
      logEvent('executor balance low', {
        executor: this.address,
        balanceWei: `${head.balance}`,
        transactionsLeft: Number(transactionsLeft),
      })
  }

  /** Records that the chain has reached a block. */
  observeBlock(number: bigint) {
    if (this.recentBlock === undefined || number > this.recentBlock) this.#newestBlock = { number, at: Date.now() }
  }

  /** Forgets the newest block, because a reorg may have removed it. */
  forgetBlock() {
    this.#newestBlock = { number: 0n, at: 0 }
  }

  /**
   * The newest block that the lane has seen lately: simulations on older state would miss what the lane has just
   * executed. An older observation does not count, because after a reorg the chain may lack the block.
   */
  get recentBlock(): bigint | undefined {
    const { number, at } = this.#newestBlock
    return Date.now() - at < BLOCK_MEMORY_MS ? number : undefined
  }

  /**
   * Returns a call as it is sent now, with the newest prices that it needs: all calls of a moment bring the same ones,
   * of which the oracle verifies the first. Throws PRICE_REPORTS_UNAVAILABLE.
   */
  async withPrices({ kind, call, prices }: Pick<RelayRequest, 'kind' | 'call' | 'prices'>): Promise<Call> {
    if (prices === undefined) return call
    const isExit = kind === 'exit' || EXIT_KINDS.includes(kind)
    const carried = 'reports' in prices ? prices : await this.reports.carriedFor(prices, { isExit })
    return { to: call.to, data: encodeWithPrices(this.#oracle, carried, call.data) }
  }

  feesAt(head: ChainHead): TransactionFees {
    return feesAt(head, this.#priorityFeeWei)
  }

  /** Reads the head with the priority fee that the node suggests, which all fees follow from now on. */
  async followSuggestion(): Promise<ChainHead> {
    this.#followsSuggestion = true
    const head = await this.refreshHead()
    return head.suggestedPriorityFee === undefined ? this.refreshHead() : head // it had joined an earlier read
  }

  /** Returns the gas price that a transaction pays if it is included in the next block, in wei. */
  gasPriceAt(head: ChainHead): bigint {
    return head.baseFee + this.feesAt(head).maxPriorityFeePerGas
  }

  get lacksFunds(): boolean {
    return this.#unpaidCost !== undefined
  }

  /** Stops intake because the account cannot pay this cost in wei. */
  pauseForFunds(cost: bigint) {
    if (this.#unpaidCost === undefined) logEvent('executor out of funds', { lackingWei: `${cost}` })
    this.#unpaidCost = cost
    if (this.head) this.head = { ...this.head, readAt: 0 } // its balance is outdated
  }

  /** Ends a pause for lack of funds if the balance is high enough. */
  resumeIfFunded({ balance }: ChainHead) {
    if (this.#unpaidCost !== undefined && balance >= this.#unpaidCost * RESUME_FACTOR) this.#unpaidCost = undefined
  }

  /** Whether an operator should be told now: each alert is logged at most once in ten minutes. */
  isAlertDue(alert: string): boolean {
    const now = Date.now()
    for (const [name, at] of this.#alertedAt) if (now - at >= ALERT_INTERVAL_MS) this.#alertedAt.delete(name)
    if (this.#alertedAt.has(alert)) return false
    this.#alertedAt.set(alert, now)
    return true
  }
}

/** What a signer said about a trade, under the transaction that executes it. */
type Note = { hash: Hex; note: string }

/** Existing notes stay: a transaction is of one intent, and an intent keeps its first note. */
const INSERT_NOTES = `INSERT INTO notes (transaction_hash, note) SELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE true
  ON CONFLICT DO NOTHING`

/** How long a transaction waits for its note: a trade matters more than what was said about it. */
const MAX_WRITE_MS = 500

/**
 * Returns a function that stores notes in the history database, and resolves once they are there, or could not be
 * written in time. No row of the index has them, because the index is made from the chain alone. A lane stores a note
 * before it sends the transaction, so that it is there before the trade is, and again when the transaction is mined and
 * when the lane starts, in case an earlier write failed.
 */
const createNoteStore =
  (db: D1Database) =>
  async (notes: readonly { hash: Hex; note: string | null | undefined }[]): Promise<void> => {
    const given = notes.filter((each): each is Note => each.note !== null && each.note !== undefined)
    if (given.length === 0) return
    const write = db
      .prepare(INSERT_NOTES)
      .bind(JSON.stringify(given.map(({ hash, note }) => [hash, note])))
      .run()
      .catch(logUnexpected)
    await Promise.race([write, scheduler.wait(MAX_WRITE_MS)])
  }
