import type { PaymentAnswer } from '../errors/refusal.ts'

// x402 over MCP: JSON in `_meta` of the call and of the result.

/** Returns the payment of a call: an object, or base64 of JSON, as some clients send it. Returns undecodable text as it is. */
export function paymentOf(meta: Record<string, unknown> | undefined): unknown {
  const payment = meta?.['x402/payment']
  if (typeof payment !== 'string') return payment
  try {
    return JSON.parse(atob(payment))
  } catch {
    return payment
  }
}

/** Returns the `_meta` field of a result: the receipt, or the requirements under the key that the `agents` client reads. */
export function paymentMeta({ required, response }: PaymentAnswer = {}) {
  const meta = {
    ...(required && { 'x402/error': required }),
    ...(response && { 'x402/payment-response': response }),
  }
  return Object.keys(meta).length > 0 ? { _meta: meta } : {}
}
