import type { Address } from 'viem'
import { row } from './error-row.ts'

/** The registration fee, paid over x402. */
export const paymentErrors = {
  PAYMENT_REQUIRED: row({
    status: 402,
    sentence: () => 'The registration fee must be paid.',
    remedy:
      'Pay what `accepts` asks (x402) and send the identical body again with the payment in PAYMENT-SIGNATURE; over MCP in _meta["x402/payment"].',
  }),
  PAYMENT_REFUSED: row<{
    problem: string
    field?: string
    given?: string
    expected?: string
    /** Who holds less than the fee. */
    poorPayer?: { payer: Address; amount: string; asset: string; network: string }
  }>({
    status: 402,
    sentence: ({ problem, poorPayer }) =>
      poorPayer === undefined
        ? `The payment was not accepted: ${problem}.`
        : `The payer ${poorPayer.payer} has less than the fee of ${poorPayer.amount} base units of ${poorPayer.asset} on ${poorPayer.network}.`,
    remedy: 'Nothing was charged. Sign exactly what `accepts` asks and send the identical body again.',
  }),
  PAYMENT_ALREADY_USED: row({
    status: 402,
    sentence: () => 'The payment belongs to another registration.',
    remedy: 'Nothing was charged again. Sign a new payment for this registration.',
  }),
  INVALID_PAYMENT: row<{ problem: string }>({
    status: 400,
    sentence: ({ problem }) => `The payment cannot be decoded: ${problem}.`,
    remedy:
      'Send the x402 payload (version 2 or 1) as base64 of JSON, with an EIP-3009 authorization of the scheme `exact`.',
  }),
  PAYMENT_PENDING: row({
    status: 502,
    sentence: () => 'The payment was submitted and its settlement is not known yet.',
    remedy: 'Send the identical body again, with or without the payment: nothing is charged twice.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  FACILITATOR_UNAVAILABLE: row({
    status: 502,
    sentence: () => 'The payment cannot be verified or settled at the moment; nothing was charged.',
    remedy: 'Send the identical body with the same payment again.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  PAYMENT_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'The registration fee must be paid over x402, which this deployment is not configured for.',
    remedy: 'The operator must correct the X402 variables.',
  }),
}
