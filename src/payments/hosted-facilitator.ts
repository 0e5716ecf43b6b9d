import { type FacilitatorClient, HTTPFacilitatorClient } from '@x402/core/http'
import { SettleError, VerifyError } from '@x402/core/types'
import type { Hex } from 'viem'
import type { Payment } from './parse-payment.ts'
import type { PaymentRequirements } from './requirements.ts'

export type Verdict = { is: 'valid' } | { is: 'refused'; reason: string } | { is: 'unavailable' }

export type Settlement =
  | { is: 'settled'; transaction: Hex }
  | { is: 'refused'; reason: string }
  /** Handed to the chain or lost on the way: it may have been settled, and only the chain knows. */
  | { is: 'open' }
  /** Nothing was sent. */
  | { is: 'untouched' }

/** Verifies payments and brings them to the chain. The same payment may be settled again: it moves money once. */
export type Facilitator = {
  verify(payment: Payment, requirements: PaymentRequirements): Promise<Verdict>
  settle(payment: Payment, requirements: PaymentRequirements): Promise<Settlement>
}

const PENDING = 'settlement_pending'

/** A facilitator behind a URL, spoken to in the protocol's own HTTP interface. */
export function hostedFacilitator(url: string, timeoutMs: number): Facilitator {
  // Not before it is needed: an isolate may not fetch in its global scope.
  const client = (): FacilitatorClient => new HTTPFacilitatorClient({ url, timeoutMs })
  return {
    async verify({ payload }, requirements) {
      try {
        const { isValid, invalidReason } = await client().verify(payload, requirements)
        return isValid ? { is: 'valid' } : { is: 'refused', reason: reasonOf(invalidReason) }
      } catch (error) {
        if (error instanceof VerifyError) return { is: 'refused', reason: reasonOf(error.invalidReason) }
        return { is: 'unavailable' }
      }
    },
    async settle({ payload }, requirements) {
      try {
        const { success, transaction, errorReason } = await client().settle(payload, requirements)
        if (success) return { is: 'settled', transaction: transaction as Hex }
        return errorReason === PENDING ? { is: 'open' } : { is: 'refused', reason: reasonOf(errorReason) }
      } catch (error) {
        if (error instanceof SettleError && error.errorReason !== PENDING)
          return { is: 'refused', reason: reasonOf(error.errorReason) }
        return { is: 'open' }
      }
    },
  }
}

/** A facilitator's reason as it may go to the caller: its code, never its free text. */
export const reasonOf = (reason: string | undefined): string =>
  reason !== undefined && /^\w{1,100}$/.test(reason) ? reason : 'the facilitator gave no reason'

const LOOK_MS = 2_000

/** Whether a hosted facilitator answers what it supports. */
export const isReachable = (url: string): Promise<boolean> =>
  fetch(`${url}/supported`, { signal: AbortSignal.timeout(LOOK_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
