import { Buffer } from 'node:buffer'
import { z } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import type { PaymentAnswer } from '../errors/refusal.ts'

// x402 over HTTP: JSON in base64, in the headers of version 2 and of version 1.

/** Returns the payment of a request as decoded JSON, or as the raw text if it cannot be decoded. */
export function paymentOf(headers: Headers): unknown {
  const text = headers.get('PAYMENT-SIGNATURE') ?? headers.get('X-PAYMENT')
  if (text === null) return undefined
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  } catch {
    return text
  }
}

/** Sets the x402 headers of a response: the requirements, or the receipt. */
export function writePayment(c: HonoContext, { required, response }: PaymentAnswer = {}): void {
  if (required) c.header('PAYMENT-REQUIRED', encode(required))
  if (response === undefined) return
  c.header('PAYMENT-RESPONSE', encode(response))
  c.header('X-PAYMENT-RESPONSE', encode(response))
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64')

const textHeader = (description: string) => ({ description, schema: { type: 'string' as const } })
const receipt = textHeader('The x402 SettleResponse of the fee, base64 of JSON; absent if nothing was paid')

/** The headers of a paid operation in the OpenAPI document. */
export const paymentHeaders = {
  request: z.object({
    'payment-signature': z
      .string()
      .optional()
      .describe('The x402 PaymentPayload, base64 of JSON; `X-PAYMENT` is accepted too'),
  }),
  success: { 'PAYMENT-RESPONSE': receipt, 'X-PAYMENT-RESPONSE': receipt },
  required: { 'PAYMENT-REQUIRED': textHeader('The payment requirements, as in the body: base64 of JSON') },
}
