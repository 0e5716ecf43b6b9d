import type { Hex } from 'viem'
import type { GasShortage } from '../executor/relay-types.ts'
import type { Payment } from './parse-payment.ts'
import type { PaymentRequirements } from './requirements.ts'

export type VerificationResult = { kind: 'valid' } | { kind: 'refused'; reason: string } | { kind: 'unavailable' }

export type SettlementResult =
  | { kind: 'settled'; transaction: Hex }
  | { kind: 'refused'; reason: string }
  /** It was sent, or the response was lost: only the chain knows whether it settled. */
  | { kind: 'unknown' }
  /** Nothing was sent. */
  | { kind: 'unsent' }
  /** Nothing was sent, because earlier settlements used up what the payer may cost. */
  | { kind: 'throttled'; throttle: Throttle }

/** Why a payer must wait: its settlements reverted, or a gas budget is exhausted. */
export type Throttle = { retryAfterSeconds: number; shortage?: Omit<GasShortage, 'retryAfterSeconds'> }

/** Verifies and settles x402 payments. Settling the same payment again does not move money twice. */
export type Facilitator = {
  verify(payment: Payment, requirements: PaymentRequirements): Promise<VerificationResult>
  settle(payment: Payment, requirements: PaymentRequirements): Promise<SettlementResult>
}

/** Returns a facilitator's reason for the caller: its code, never its free text. */
export const toReasonCode = (reason: string | undefined): string =>
  reason !== undefined && /^\w{1,100}$/.test(reason) ? reason : 'the facilitator gave no reason'
