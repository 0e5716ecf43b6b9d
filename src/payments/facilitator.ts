import type { PaymentPayload } from '@x402/core/types'
import type { Hex } from 'viem'
import { z } from 'zod'
import type { UnsentOutcome } from '../executor/relay-types.ts'
import type { Payment, PaymentRequirements } from './parse-payment.ts'

type VerificationResult = { kind: 'valid' } | { kind: 'refused'; reason: string } | { kind: 'unavailable' }

type SettlementResult =
  | { kind: 'settled'; transaction: Hex }
  | { kind: 'refused'; reason: string }
  /** It was sent, or the response was lost: only the chain knows whether it settled. */
  | { kind: 'unknown' }
  /** Nothing was sent. `outcome` is why the relayer's lane did not accept it; absent if no node was reachable. */
  | { kind: 'unsent'; outcome?: UnsentOutcome }

/** Verifies and settles x402 payments. Settling the same payment again does not move money twice. */
export type Facilitator = {
  verify(payment: Payment, requirements: PaymentRequirements): Promise<VerificationResult>
  settle(payment: Payment, requirements: PaymentRequirements): Promise<SettlementResult>
}

/** Returns a facilitator's reason for the caller: its code, never its free text. */
export const toReasonCode = (reason: string | undefined): string =>
  reason !== undefined && /^\w{1,100}$/.test(reason) ? reason : 'the facilitator gave no reason'

/**
 * Reasons that may follow a broadcast, such as a timeout, a failed transaction or an internal error: the settlement may
 * still be mined. Others, such as `insufficient_funds`, say why nothing was sent.
 */
const MAY_FOLLOW_SENDING = /pending|time|transaction|broadcast|error|fail|unexpected|internal|unknown/i

const reasonCode = z
  .string()
  .nullish()
  .transform(reason => reason ?? undefined)
const verification = z.object({ isValid: z.boolean(), invalidReason: reasonCode })
const settlement = z.object({ success: z.boolean(), errorReason: reasonCode, transaction: z.string() })
/** Error responses need no transaction. */
const failedSettlement = settlement.omit({ transaction: true })

/** Returns a facilitator at a URL that implements the x402 HTTP interface. */
export function hostedFacilitator(url: string, timeoutMs: number): Facilitator {
  const post = (path: 'verify' | 'settle', payload: PaymentPayload, requirements: PaymentRequirements) =>
    postJson(`${url.replace(/\/+$/, '')}/${path}`, timeoutMs, {
      x402Version: payload.x402Version,
      paymentPayload: payload,
      paymentRequirements: requirements,
    })
  return {
    async verify({ payload }, requirements) {
      try {
        const { ok, body } = await post('verify', payload, requirements)
        const { isValid, invalidReason } = verification.parse(body)
        return ok && isValid ? { kind: 'valid' } : { kind: 'refused', reason: toReasonCode(invalidReason) }
      } catch {
        return { kind: 'unavailable' }
      }
    },
    async settle({ payload }, requirements) {
      try {
        const { ok, body } = await post('settle', payload, requirements)
        if (ok) {
          const { success, transaction } = settlement.parse(body)
          if (success) return { kind: 'settled', transaction: transaction as Hex }
        }
        const { errorReason } = failedSettlement.parse(body)
        if (errorReason === undefined || MAY_FOLLOW_SENDING.test(errorReason)) return { kind: 'unknown' }
        return { kind: 'refused', reason: toReasonCode(errorReason) }
      } catch {
        return { kind: 'unknown' }
      }
    },
  }
}

/** Posts JSON and returns the JSON of the response. Throws if the whole response is not there within the timeout. */
async function postJson(url: string, timeoutMs: number, content: object): Promise<{ ok: boolean; body: unknown }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content),
    signal: AbortSignal.timeout(timeoutMs),
  })
  return { ok: response.ok, body: await response.json() }
}

const REACHABILITY_TIMEOUT_MS = 2_000

/** Returns whether a hosted facilitator responds to a request for what it supports. */
export const isReachable = (url: string): Promise<boolean> =>
  fetch(`${url}/supported`, { signal: AbortSignal.timeout(REACHABILITY_TIMEOUT_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
