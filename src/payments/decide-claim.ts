import type { Address, Hex } from 'viem'
import type { Executor } from '../executor/client.ts'
import { logFailure } from '../log.ts'
import type { Payment } from './parse-payment.ts'
import { type ClaimResult, type PaymentClaim, receiptOf } from './payment-claim.ts'
import { readNewestBlock, type Settlement } from './settlement.ts'
import type { LedgerEntry, LedgerStore } from './store.ts'

/** A registration that holds a payment has reached its lane after this long, or never will. */
const MAX_HOLD_MS = 30_000

const logUnresolved = (error: unknown) => logFailure('payment ledger', error)

/** Returns a function that resolves a claim. It must resolve the claims of one signer one after the other. */
export function createClaimDecider({
  store,
  settlement,
  relayer,
  sync,
}: {
  store: LedgerStore
  settlement: Settlement
  relayer: () => Executor
  /** Resolves when all writes so far are durable. */
  sync: () => Promise<void>
}): (claim: PaymentClaim) => Promise<ClaimResult> {
  /** The signers whose payments are being verified, by payer and nonce. */
  const verifying = new Map<string, Address>()

  async function decideClaim(claim: PaymentClaim): Promise<ClaimResult> {
    const { registration, payment, network } = claim
    const spent = store.spentOn(registration.digest)
    if (spent) return { kind: 'paid', receipt: receiptOf(spent) }

    const unspent = store.unspentOf(registration.signer)
    if (unspent?.state === 'settled') return useSettled(unspent, claim)
    if (unspent) {
      const resumed = await settlement.resume(unspent, network)
      if (resumed === 'settled') return decideClaim(claim)
      if (resumed === 'pending') return { kind: 'pending' }
    }
    const isLate = await settlement.findLate(registration.signer, network)
    if (isLate === 'unknown') return { kind: 'unavailable' }
    if (isLate) return decideClaim(claim)
    return payment === undefined ? { kind: 'due' } : settlePayment(payment, claim)
  }

  /** Lets a registration hold its signer's settled payment, unless another registration used it or may use it. */
  async function useSettled(entry: LedgerEntry, claim: PaymentClaim): Promise<ClaimResult> {
    const { registration } = claim
    const { digest: holder } = entry
    if (holder !== null && holder !== registration.digest) {
      const state = await stateOfHolder(entry, holder, registration.nonce)
      if (state === 'executed') {
        store.spend({ signer: entry.signer, digest: holder })
        return decideClaim(claim)
      }
      if (state === 'in flight') return { kind: 'held', digest: holder }
    }
    store.hold(registration)
    return { kind: 'paid', receipt: receiptOf(entry) }
  }

  /** Returns what became of the registration that holds a payment. `nextNonce` is the signer's next nonce. */
  async function stateOfHolder(
    entry: LedgerEntry,
    holder: Hex,
    nextNonce: bigint,
  ): Promise<'executed' | 'in flight' | 'not executed'> {
    const record = await relayer().find({ as: 'registrant', account: entry.signer }, holder)
    if (record?.state === 'mined' || record?.state === 'final') return 'executed'
    if (record?.state === 'rejected' || record?.state === 'reverted') return 'not executed'
    if (record !== undefined || Date.now() - entry.heldSince < MAX_HOLD_MS) return 'in flight'
    // The lane never had it, or has forgotten it after an execution that used its nonce.
    return nextNonce > entry.registrationNonce ? 'executed' : 'not executed'
  }

  /** Verifies, records and settles a new payment. */
  async function settlePayment(payment: Payment, claim: PaymentClaim): Promise<ClaimResult> {
    const { registration, requirements, network } = claim
    const key = `${payment.payer} ${payment.nonce}`
    const known = store.find(payment)
    const verifiedFor = verifying.get(key)
    if (known && (known.state !== 'refused' || known.signer !== registration.signer)) return { kind: 'used' }
    if (verifiedFor !== undefined && verifiedFor !== registration.signer) return { kind: 'used' }

    verifying.set(key, registration.signer)
    try {
      const facilitator = settlement.facilitatorOf(network)
      const block = await readNewestBlock(network)
      if (block === undefined) return { kind: 'unavailable' }
      const verification = await facilitator.verify(payment, requirements)
      if (verification.kind !== 'valid') return verification
      settlement.deleteRefused(block)
      // The payer does not wait for the payments of others.
      void settlement.resolveAbandoned(network, requirements.network, block).catch(logUnresolved)
      store.begin(payment, registration, { requirements, block })
    } finally {
      verifying.delete(key)
    }
    await sync()
    const entry = store.find(payment)
    if (entry === undefined) throw new Error('A recorded payment is gone')
    const result = await settlement.settle(entry, network)
    return result.kind === 'settled' ? decideClaim(claim) : result
  }

  return decideClaim
}
