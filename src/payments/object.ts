import { DurableObject } from 'cloudflare:workers'
import { createKeyedQueue } from '../concurrency.ts'
import { parseConfig } from '../config/config.ts'
import { createExecutor, type Executor } from '../executor/client.ts'
import { createClaimDecider } from './decide-claim.ts'
import { type ClaimResult, type PaymentClaim, type PaymentReceipt, receiptOf } from './payment-claim.ts'
import { createSettlement } from './settlement.ts'
import { type LedgerStore, openLedgerStore, type PaidRegistration } from './store.ts'

/**
 * The ledger of registration fees. There is one object, so a payment is charged once, however often and by whomever it
 * is posted. A payment is recorded before it is settled; after a restart the chain tells what became of it.
 */
export class PaymentLedgerObject extends DurableObject<Env> {
  readonly #store: LedgerStore
  readonly #claim: (claim: PaymentClaim) => Promise<ClaimResult>

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const store = openLedgerStore(ctx.storage.sql)
    const relayer = () => this.#relayer()
    this.#store = store
    const decideClaim = createClaimDecider({
      store,
      settlement: createSettlement({ store, relayer }),
      relayer,
      sync: () => ctx.storage.sync(),
    })
    // Payments of one signer run one after the other.
    const inOrder = createKeyedQueue<string>()
    this.#claim = claim => inOrder(claim.registration.signer, () => decideClaim(claim))
  }

  /**
   * Makes sure that a registration is paid for and lets it hold the payment: an earlier one of its signer, or the given
   * one, which is verified and settled. The same claim again returns the same result and moves no money again.
   */
  claim(claim: PaymentClaim): Promise<ClaimResult> {
    return this.#claim(claim)
  }

  /** Records whether a paid registration was executed, or certainly was not. */
  conclude(registration: Pick<PaidRegistration, 'signer' | 'digest'>, executed: boolean): void {
    const { digest } = registration
    if (!executed) this.#store.release(digest)
    else if (this.#store.spentOn(digest) === undefined) this.#store.spend(registration)
  }

  /** Returns the payment of a registration that is on the chain; undefined if it was not paid here. */
  receipt(registration: Pick<PaidRegistration, 'signer' | 'digest'>): PaymentReceipt | undefined {
    const { signer, digest } = registration
    if (this.#store.unspentOf(signer)?.digest === digest) this.#store.spend(registration)
    const entry = this.#store.spentOn(digest)
    return entry && receiptOf(entry)
  }

  #relayer(): Executor {
    const config = parseConfig({ ...this.env })
    if (config.relayerKey === undefined) throw new Error('The ledger needs RELAYER_PRIVATE_KEY')
    return createExecutor(this.env.EXECUTOR_LANE, [config.relayerKey], config)
  }
}
