import { Buffer } from 'node:buffer'
import { z } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import type { PaymentAnswer } from '../errors/refusal.ts'

// x402 over HTTP: JSON in base64, in the headers of version 2 and under the older names.

/** The payment that came with a request; one that cannot be decoded stays the text that it is. */
export function paymentOf(headers: Headers): unknown {
  const text = headers.get('PAYMENT-SIGNATURE') ?? headers.get('X-PAYMENT')
  if (text === null) return undefined
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  } catch {
    return text
  }
}

/** Writes what x402 says beside an answer into its headers. */
export function writePayment(c: HonoContext, { required, response }: PaymentAnswer = {}): void {
  if (required) c.header('PAYMENT-REQUIRED', encode(required))
  if (response === undefined) return
  c.header('PAYMENT-RESPONSE', encode(response))
  c.header('X-PAYMENT-RESPONSE', encode(response))
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64')

const text = (description: string) => ({ description, schema: { type: 'string' as const } })
const receipt = text('The x402 SettleResponse of the fee, base64 of JSON; absent where nothing was paid')

/** What the OpenAPI document says of the headers of an operation that is paid for, by direction. */
export const paymentHeaders = {
  request: z.object({
    'payment-signature': z
      .string()
      .optional()
      .meta({ description: 'The x402 PaymentPayload, base64 of JSON; `X-PAYMENT` is understood too' }),
  }),
  success: { 'PAYMENT-RESPONSE': receipt, 'X-PAYMENT-RESPONSE': receipt },
  required: { 'PAYMENT-REQUIRED': text('What to pay, the same as in the body: base64 of JSON') },
}
