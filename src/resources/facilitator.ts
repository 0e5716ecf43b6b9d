import { z } from 'zod'
import { addressOut } from './primitives.ts'

const anyObject = z.record(z.string(), z.unknown())

/** The request of an x402 client to a facilitator (x402 version 2). */
export const facilitatorBody = z.object({
  x402Version: z.int().meta({ description: 'Version of the payload: 2, or 1', example: 2 }),
  paymentPayload: anyObject.meta({ description: 'The signed payment', example: { x402Version: 2 } }),
  paymentRequirements: anyObject.meta({
    description: "What the payment must satisfy; must be this deployment's own registration fee",
    example: { scheme: 'exact' },
  }),
})

export const verification = z
  .object({
    isValid: z.boolean(),
    invalidReason: z.string().optional().meta({ description: 'Why the payment is invalid' }),
    payer: addressOut.optional(),
  })
  .meta({ id: 'FacilitatorVerification' })

export const supported = z
  .object({
    kinds: z.array(z.object({ x402Version: z.int(), scheme: z.string(), network: z.string() })),
    extensions: z.array(z.string()),
    signers: z
      .record(z.string(), z.array(addressOut))
      .meta({ description: 'The accounts that settle, by network pattern' }),
  })
  .meta({ id: 'FacilitatorSupport' })
