import type { PaymentAnswer } from '../errors/refusal.ts'

// x402 over MCP: JSON in the `_meta` of call and result.

/** The payment of a call: an object, or as some clients send it JSON in base64; what cannot be decoded stays as it is. */
export function paymentOf(meta: Record<string, unknown> | undefined): unknown {
  const payment = meta?.['x402/payment']
  if (typeof payment !== 'string') return payment
  try {
    return JSON.parse(atob(payment))
  } catch {
    return payment
  }
}

/** What x402 says beside a result: the receipt, or the requirements where the `agents` client looks for them. */
export function paymentMeta({ required, response }: PaymentAnswer = {}) {
  const meta = {
    ...(required && { 'x402/error': required }),
    ...(response && { 'x402/payment-response': response }),
  }
  return Object.keys(meta).length > 0 ? { _meta: meta } : {}
}
