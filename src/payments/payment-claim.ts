import type { Address, Hex } from 'viem'
import type { UnsentOutcome } from '../executor/relay-types.ts'
import type { Payment, PaymentRequirements } from './parse-payment.ts'
import type { LedgerEntry, PaidRegistration } from './store.ts'

/** How the ledger reaches the network that fees are paid on. */
export type FeeNetwork = { rpcUrls: string[]; facilitatorUrl: string | undefined; facilitatorTimeoutMs: number }

/** A registration that must be paid for, and the payment that came with it. */
export type PaymentClaim = {
  registration: PaidRegistration
  payment: Payment | undefined
  requirements: PaymentRequirements
  network: FeeNetwork
}

/** The settled payment of a registration, in the shape of an x402 response. */
export type PaymentReceipt = { success: true; transaction: Hex; network: `${string}:${string}`; payer: Address }

export type ClaimResult =
  | { kind: 'paid'; receipt: PaymentReceipt }
  /** Nothing was paid, and the claim has no payment. */
  | { kind: 'due' }
  | { kind: 'refused'; reason: string }
  /** The payment belongs to another registration. */
  | { kind: 'used' }
  /** Another registration of the signer holds the payment and is in flight. */
  | { kind: 'held'; digest: Hex }
  /** The payment may have settled. Claiming again finds out. */
  | { kind: 'pending' }
  /** The relayer's lane does not accept the settlement now. Nothing was charged. */
  | { kind: 'notAccepted'; outcome: UnsentOutcome }
  /** The facilitator or the network is unreachable. Nothing was charged. */
  | { kind: 'unavailable' }

/** Returns the receipt of a settled payment. */
export function receiptOf({ transaction, requirements, payer }: LedgerEntry): PaymentReceipt {
  if (transaction === null) throw new Error('A settled payment has no transaction')
  return { success: true, transaction, network: requirements.network, payer }
}
