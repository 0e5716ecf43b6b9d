import { type FacilitatorClient, HTTPFacilitatorClient } from '@x402/core/http'
import { SettleError, VerifyError } from '@x402/core/types'
import type { Hex } from 'viem'
import { type Facilitator, toReasonCode } from './facilitator.ts'

const PENDING = 'settlement_pending'

/** Returns a facilitator at a URL that implements the x402 HTTP interface. */
export function hostedFacilitator(url: string, timeoutMs: number): Facilitator {
  // Created for each call, because an isolate may not fetch in its global scope.
  const client = (): FacilitatorClient => new HTTPFacilitatorClient({ url, timeoutMs })
  return {
    async verify({ payload }, requirements) {
      try {
        const { isValid, invalidReason } = await client().verify(payload, requirements)
        return isValid ? { kind: 'valid' } : { kind: 'refused', reason: toReasonCode(invalidReason) }
      } catch (error) {
        if (error instanceof VerifyError) return { kind: 'refused', reason: toReasonCode(error.invalidReason) }
        return { kind: 'unavailable' }
      }
    },
    async settle({ payload }, requirements) {
      try {
        const { success, transaction, errorReason } = await client().settle(payload, requirements)
        if (success) return { kind: 'settled', transaction: transaction as Hex }
        return errorReason === PENDING ? { kind: 'unknown' } : { kind: 'refused', reason: toReasonCode(errorReason) }
      } catch (error) {
        if (error instanceof SettleError && error.errorReason !== PENDING)
          return { kind: 'refused', reason: toReasonCode(error.errorReason) }
        return { kind: 'unknown' }
      }
    },
  }
}

const REACHABILITY_TIMEOUT_MS = 2_000

/** Returns whether a hosted facilitator responds to a request for what it supports. */
export const isReachable = (url: string): Promise<boolean> =>
  fetch(`${url}/supported`, { signal: AbortSignal.timeout(REACHABILITY_TIMEOUT_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
