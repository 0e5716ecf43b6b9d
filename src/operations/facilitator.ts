import { z } from 'zod'
import { getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { type Payment, type PaymentRequirements, parsePayment, requirementsOf } from '../payments/parse-payment.ts'
import { selfHostedFacilitator } from '../payments/self-hosted-facilitator.ts'
import { addressOut } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const anyObject = z.record(z.string(), z.unknown())

/** The request of an x402 client to a facilitator (x402 version 2). */
const facilitatorBody = z.object({
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
    invalidReason: z.string().optional().describe('Why the payment is invalid'),
    payer: addressOut.optional(),
  })
  .meta({ id: 'FacilitatorVerification' })

export const supported = z
  .object({
    kinds: z.array(z.object({ x402Version: z.int(), scheme: z.string(), network: z.string() })),
    extensions: z.array(z.string()),
    signers: z.record(z.string(), z.array(addressOut)).describe('The accounts that settle, by network pattern'),
  })
  .meta({ id: 'FacilitatorSupport' })

// The public part of the facilitator inside the Worker: supported kinds and verification. It does not offer settlement,
// because the ledger could not tell a payment that was settled separately from one that a registration has used.

/**
 * Returns this Worker's facilitator and the current fee. Throws PAYMENT_NOT_CONFIGURED without fees or with a hosted
 * facilitator.
 */
async function selfHosted({ config, chain, relayer }: Pick<Context, 'chain' | 'config' | 'relayer'>) {
  const { payment } = config
  if (payment === undefined || payment === 'unusable' || payment.facilitatorUrl !== undefined)
    throw refuse('PAYMENT_NOT_CONFIGURED')
  const { block, terms } = await getRegistrationTerms(chain)
  const now = nowAt(block)
  const requirements = requirementsOf(payment, terms.fee, now)
  if (requirements === undefined) throw refuse('PAYMENT_NOT_CONFIGURED')
  return { requirements, now, facilitator: selfHostedFacilitator(chain.rpc, relayer) }
}

type PaymentVerification = { paymentPayload: Record<string, unknown>; paymentRequirements: Record<string, unknown> }

/** Returns the payment if it is for this deployment's fee, otherwise the x402 reason why not. */
function readPayment(
  request: PaymentVerification,
  own: PaymentRequirements,
  now: bigint,
): { payment: Payment } | { reason: string } {
  for (const field of ['scheme', 'network', 'asset', 'payTo'] as const) {
    const given = request.paymentRequirements[field]
    if (typeof given !== 'string' || given.toLowerCase() !== own[field].toLowerCase())
      return { reason: `invalid_payment_requirements: ${field}` }
  }
  const parsed = parsePayment(request.paymentPayload, own, now)
  if (parsed.kind === 'valid') return { payment: parsed.payment }
  return {
    reason: parsed.kind === 'malformed' ? 'invalid_payload' : `invalid_payment_requirements: ${parsed.field}`,
  }
}

export const getFacilitatorSupport = defineOperation(
  {
    id: 'getFacilitatorSupport',
    path: '/facilitator/supported',
    tag: 'Agents',
    summary: 'List the supported payment kinds',
    description:
      "Returns the payment kinds of this Worker's own x402 facilitator, which is used if no hosted one is configured. It settles only as part of POST /agents/register.",
    output: supported,
    errors: [502, 503],
  },
  async (context: Context) => {
    const { requirements } = await selfHosted(context)
    const { scheme, network } = requirements
    return {
      kinds: [{ x402Version: 2, scheme, network }],
      extensions: [],
      signers: { [network]: [context.relayer.address] },
    }
  },
)

export const verifyPayment = defineOperation(
  {
    id: 'verifyPayment',
    method: 'post',
    path: '/facilitator/verify',
    tag: 'Agents',
    summary: 'Verify a payment of the registration fee',
    description: "Tells whether a payment of this deployment's registration fee would settle. Moves no money.",
    body: facilitatorBody,
    readsOnly: true,
    units: 5,
    output: verification,
    errors: [502, 503],
  },
  async (context: Context, request) => {
    const { requirements, now, facilitator } = await selfHosted(context)
    const read = readPayment(request, requirements, now)
    if ('reason' in read) return { isValid: false, invalidReason: read.reason }
    const result = await facilitator.verify(read.payment, requirements)
    if (result.kind === 'unavailable') throw refuse('FACILITATOR_UNAVAILABLE')
    const { payer } = read.payment
    return result.kind === 'valid' ? { isValid: true, payer } : { isValid: false, invalidReason: result.reason, payer }
  },
)
