import type { PaymentPayload } from '@x402/core/types'
import type { Hex } from 'viem'
import { z } from 'zod'
import { type Facilitator, toReasonCode } from './facilitator.ts'
import type { PaymentRequirements } from './requirements.ts'

/**
 * Reasons that a facilitator finds only before it sends anything. After any other reason, such as a timeout or a failed
 * transaction, the settlement may still be mined.
 */
const REASONS_BEFORE_SENDING: ReadonlySet<string | undefined> = new Set([
  'insufficient_funds',
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_signature',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'invalid_x402_version',
  'unsupported_scheme',
])

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
        if (!REASONS_BEFORE_SENDING.has(errorReason)) return { kind: 'unknown' }
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
