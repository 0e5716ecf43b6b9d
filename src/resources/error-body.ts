import { z } from 'zod'
import { addressOut, digits } from './primitives.ts'

/** The body of every error response. */
export const errorBody = z
  .object({
    error: z.string().describe('A message for the caller'),
    code: z.string().meta({ description: 'Stable code in SCREAMING_SNAKE_CASE', example: 'AGENT_NOT_FOUND' }),
    requestId: z.string().describe('Also in the header X-Request-Id; quote it when reporting a problem'),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Facts such as the limit, the given and the expected value'),
    remedy: z.string().optional().describe('What to do next'),
    retryable: z.boolean().optional().describe('Whether the identical request may succeed later'),
    retryAfterSeconds: z.int().optional(),
  })
  .meta({ id: 'Error' })

export const paymentRequirements = z
  .object({
    scheme: z.string().meta({ description: 'Always `exact`', example: 'exact' }),
    network: z.string().meta({ description: 'CAIP-2 network of the payment', example: 'eip155:42161' }),
    asset: addressOut.describe('The EIP-3009 token to pay in'),
    amount: digits('Amount in base units of the asset'),
    payTo: addressOut,
    maxTimeoutSeconds: z.int().describe('Maximum validity of the authorization in seconds'),
    extra: z.object({ name: z.string(), version: z.string() }).describe("The asset's EIP-712 signing domain"),
  })
  .meta({ id: 'PaymentRequirements', description: 'What a payment must satisfy (x402 version 2)' })

/** The body of a 402: the content of the PAYMENT-REQUIRED header plus the error. */
export const paymentRequiredBody = errorBody
  .extend({
    x402Version: z.int().describe('Always 2; payments of version 1 are accepted too'),
    resource: z.object({ url: z.string(), description: z.string(), mimeType: z.string() }),
    accepts: z.array(paymentRequirements),
  })
  .meta({ id: 'PaymentRequired' })
