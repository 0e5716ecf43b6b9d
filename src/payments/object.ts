import { DurableObject } from 'cloudflare:workers'
import type { Address, Hex } from 'viem'
import { parseConfig } from '../config.ts'
import { createExecutor, type Executor } from '../executor/client.ts'
import { blockRequest } from '../rpc/requests.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'
import { type Facilitator, hostedFacilitator } from './hosted-facilitator.ts'
import type { Payment } from './parse-payment.ts'
import type { PaymentRequirements } from './requirements.ts'
import { selfHostedFacilitator } from './self-hosted-facilitator.ts'
import { findTransfer } from './settlement-lookup.ts'
import { type Accounts, type Entry, openAccounts, type Registration } from './store.ts'

/** How the ledger reaches the fee network. */
export type Route = { rpcUrls: string[]; facilitatorUrl: string | undefined; facilitatorTimeoutMs: number }

/** A registration that wants to be paid for, and the payment that came with it. */
export type Claim = {
  registration: Registration
  payment: Payment | undefined
  requirements: PaymentRequirements
  route: Route
}

/** The settled payment of a registration, as x402 answers it. */
export type Receipt = { success: true; transaction: Hex; network: `${string}:${string}`; payer: Address }

export type Taken =
  | { is: 'paid'; receipt: Receipt }
  /** Nothing has been paid, and no payment came along. */
  | { is: 'due' }
  | { is: 'refused'; reason: string }
  /** The payment belongs to another registration. */
  | { is: 'used' }
  /** Another registration of the signer holds the signer's payment and is under way. */
  | { is: 'held'; digest: Hex }
  /** It may have been settled; the same again finds out. */
  | { is: 'pending' }
  /** The facilitator cannot be reached; nothing was charged. */
  | { is: 'unavailable' }

const RPC_TIMEOUT_MS = 5_000
/** A registration that holds a payment has reached its lane after this long, or never will. */
const HOLD_MS = 30_000
/** For how long a payment that was refused is still looked for on the chain before its signer is charged anew. */
const REGRET_MS = 3_600_000
/** An authorization is given up this long after its expiry: the node that is asked may lag behind. */
const GIVE_UP_SECONDS = 60n

/**
 * The ledger of registration fees: one object, so that a payment is taken once whoever posts it how often. It verifies
 * and settles; what it has written down before a settlement survives a restart, and the chain says what became of it.
 */
export class PaymentLedger extends DurableObject<Env> {
  readonly #accounts: Accounts
  /** Signers whose claims are under way: the next one of a signer waits for the one before it. */
  readonly #turns = new Map<Address, Promise<unknown>>()
  /** Payments that are being verified, by payer and nonce, and for whom. */
  readonly #verifying = new Map<string, Address>()

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#accounts = openAccounts(ctx.storage.sql)
  }

  /**
   * Sees to it that a registration is paid for, and lets it hold the payment: one that its signer has made before, or
   * the given one, which is verified and settled. The same claim again answers the same and moves no money again.
   */
  take(claim: Claim): Promise<Taken> {
    const { signer } = claim.registration
    const turn = (this.#turns.get(signer) ?? Promise.resolve()).then(() => this.#take(claim))
    const done = turn
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(signer) === done) this.#turns.delete(signer)
      })
    this.#turns.set(signer, done)
    return turn
  }

  /** Records what became of a registration that was paid for: executed, or certainly not. */
  conclude(registration: Pick<Registration, 'signer' | 'digest'>, executed: boolean): void {
    const { digest } = registration
    if (!executed) this.#accounts.release(digest)
    else if (this.#accounts.spentOn(digest) === undefined) this.#accounts.spend(registration)
  }

  /** The payment of a registration that is on the chain, if it was paid for here. */
  receipt(registration: Pick<Registration, 'signer' | 'digest'>): Receipt | undefined {
    const { signer, digest } = registration
    if (this.#accounts.open(signer)?.digest === digest) this.#accounts.spend(registration)
    const entry = this.#accounts.spentOn(digest)
    return entry && receiptOf(entry)
  }

  async #take(claim: Claim): Promise<Taken> {
    const { registration, payment, route } = claim
    const spent = this.#accounts.spentOn(registration.digest)
    if (spent) return { is: 'paid', receipt: receiptOf(spent) }

    const open = this.#accounts.open(registration.signer)
    if (open?.state === 'settled') return this.#useSettled(open, claim)
    if (open) {
      const found = await this.#resume(open, route)
      if (found !== 'refused') return found === 'settled' ? this.#take(claim) : { is: found }
    }
    const late = await this.#settledLate(registration.signer, route)
    if (late === 'unknown') return { is: 'unavailable' }
    if (late) return this.#take(claim)
    return payment === undefined ? { is: 'due' } : this.#takePayment(payment, claim)
  }

  /** Whether a payment of a signer was settled after all: a facilitator that has said no may have been wrong. */
  async #settledLate(signer: Address, route: Route): Promise<boolean | 'unknown'> {
    for (const entry of this.#accounts.refused(signer, Date.now() - REGRET_MS)) {
      const transaction = await this.#transferOf(entry, route)
      if (transaction === 'unknown') return 'unknown'
      if (transaction === undefined) continue
      this.#accounts.settle(entry, transaction)
      return true
    }
    return false
  }

  /** Lets a registration hold its signer's settled payment, unless another one has used it or is about to. */
  async #useSettled(entry: Entry, claim: Claim): Promise<Taken> {
    const { registration } = claim
    const { digest: holder } = entry
    if (holder !== null && holder !== registration.digest) {
      const use = await this.#useOf(entry, holder, registration.nonce)
      if (use === 'executed') {
        this.#accounts.spend({ signer: entry.signer, digest: holder })
        return this.#take(claim)
      }
      if (use === 'under way') return { is: 'held', digest: holder }
    }
    this.#accounts.hold(registration)
    return { is: 'paid', receipt: receiptOf(entry) }
  }

  /** What became of the registration that holds a payment. */
  async #useOf(entry: Entry, holder: Hex, currentNonce: bigint): Promise<'executed' | 'under way' | 'not executed'> {
    const record = await this.#relayer().find(`signer:${entry.signer}`, holder)
    if (record?.state === 'mined' || record?.state === 'final') return 'executed'
    if (record?.state === 'rejected' || record?.state === 'reverted') return 'not executed'
    if (record !== undefined || Date.now() - entry.heldSince < HOLD_MS) return 'under way'
    // The lane never had it or has forgotten it: then a nonce that is used says that it was executed.
    return currentNonce > entry.registrationNonce ? 'executed' : 'not executed'
  }

  async #takePayment(payment: Payment, claim: Claim): Promise<Taken> {
    const { registration, requirements, route } = claim
    const key = `${payment.payer} ${payment.nonce}`
    const known = this.#accounts.entry(payment)
    const verifiedFor = this.#verifying.get(key)
    if (known && (known.state !== 'refused' || known.signer !== registration.signer)) return { is: 'used' }
    if (verifiedFor !== undefined && verifiedFor !== registration.signer) return { is: 'used' }

    this.#verifying.set(key, registration.signer)
    try {
      const facilitator = this.#facilitator(route)
      const block = await newestBlock(transportOf(route))
      if (block === undefined) return { is: 'unavailable' }
      const verdict = await facilitator.verify(payment, requirements)
      if (verdict.is !== 'valid') return verdict
      this.#accounts.begin(payment, registration, { requirements, block })
    } finally {
      this.#verifying.delete(key)
    }
    await this.ctx.storage.sync()
    const entry = this.#accounts.entry(payment)
    if (entry === undefined) throw new Error('A payment that was written down is gone')
    return this.#settle(entry, claim)
  }

  async #settle(entry: Entry, claim: Claim): Promise<Taken> {
    const settlement = await this.#facilitator(claim.route).settle(entry, entry.requirements)
    if (settlement.is === 'settled') {
      this.#accounts.settle(entry, settlement.transaction)
      return this.#take(claim)
    }
    if (settlement.is === 'untouched') {
      this.#accounts.refuse(entry)
      return { is: 'unavailable' }
    }
    const transaction = await this.#transferOf(entry, claim.route)
    if (transaction !== undefined && transaction !== 'unknown') {
      this.#accounts.settle(entry, transaction)
      return this.#take(claim)
    }
    if (settlement.is === 'open' || transaction === 'unknown') return { is: 'pending' }
    this.#accounts.refuse(entry)
    return settlement
  }

  /** Takes up a payment whose settlement was begun: what the chain shows, or the same settlement again. */
  async #resume(entry: Entry, route: Route): Promise<'settled' | 'refused' | 'pending'> {
    const found = await this.#transferOf(entry, route)
    if (found === 'unknown') return 'pending'
    if (found !== undefined) {
      this.#accounts.settle(entry, found)
      return 'settled'
    }
    const block = await newestBlock(transportOf(route))
    if (block === undefined) return 'pending'
    if (block.timestamp >= entry.validBefore + GIVE_UP_SECONDS) {
      // Nothing that is made from now on can use it; what was made meanwhile is looked at once more.
      const late = await this.#transferOf(entry, route)
      if (late === 'unknown') return 'pending'
      if (late === undefined) this.#accounts.refuse(entry)
      else this.#accounts.settle(entry, late)
      return late === undefined ? 'refused' : 'settled'
    }
    if (block.timestamp >= entry.validBefore) return 'pending'
    const settlement = await this.#facilitator(route).settle(entry, entry.requirements)
    const transaction = settlement.is === 'settled' ? settlement.transaction : await this.#transferOf(entry, route)
    if (transaction !== undefined && transaction !== 'unknown') {
      this.#accounts.settle(entry, transaction)
      return 'settled'
    }
    // Our own lane knows what it has sent; a hosted facilitator that says no now may have sent it before.
    const isFinal = settlement.is === 'refused' && route.facilitatorUrl === undefined && transaction === undefined
    if (isFinal) this.#accounts.refuse(entry)
    return isFinal ? 'refused' : 'pending'
  }

  async #transferOf(entry: Entry, route: Route): Promise<Hex | 'unknown' | undefined> {
    const { asset, payTo, amount } = entry.requirements
    try {
      return await findTransfer(transportOf(route), {
        ...{ payer: entry.payer, nonce: entry.nonce, fromBlock: entry.fromBlock },
        ...{ asset: asset as Address, payTo: payTo as Address, amount: BigInt(amount) },
        seconds: entry.validBefore > entry.fromTime ? entry.validBefore - entry.fromTime : 0n,
      })
    } catch {
      return 'unknown'
    }
  }

  #facilitator(route: Route): Facilitator {
    return route.facilitatorUrl === undefined
      ? selfHostedFacilitator(transportOf(route), this.#relayer())
      : hostedFacilitator(route.facilitatorUrl, route.facilitatorTimeoutMs)
  }

  #relayer(): Executor {
    const config = parseConfig({ ...this.env })
    if (config.relayerKey === undefined) throw new Error('The ledger needs RELAYER_PRIVATE_KEY')
    return createExecutor(this.env.EXECUTOR_LANE, [config.relayerKey], config)
  }
}

const receiptOf = ({ transaction, requirements, payer }: Entry): Receipt => {
  if (transaction === null) throw new Error('A settled payment has no transaction')
  return { success: true, transaction, network: requirements.network, payer }
}

const transportOf = ({ rpcUrls }: Route): RpcTransport => createTransport(rpcUrls, RPC_TIMEOUT_MS)

async function newestBlock(rpc: RpcTransport): Promise<{ number: bigint; timestamp: bigint } | undefined> {
  const block = await rpc.read(blockRequest('latest')).catch(() => undefined)
  return block ? { number: BigInt(block.number), timestamp: BigInt(block.timestamp) } : undefined
}
