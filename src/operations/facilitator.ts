import { getRegistrationTerms } from '../chain/agents.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { type Payment, parsePayment } from '../payments/parse-payment.ts'
import { type PaymentRequirements, requirementsOf } from '../payments/requirements.ts'
import { selfHostedFacilitator } from '../payments/self-hosted-facilitator.ts'
import { facilitatorBody, supported, verification } from '../resources/facilitator.ts'
import { defineOperation } from './define-operation.ts'

// The facilitator that the Worker is to itself, as far as others may use it: it says what it takes and whether a payment
// of the registration fee would pass. It settles only with the registration that is paid for: a payment that was settled
// beside the ledger could not be told from one that was spent.

/** The facilitator and what it settles. Throws PAYMENT_NOT_CONFIGURED where fees are not taken, or by a hosted one. */
async function ownFacilitator({ config, chain, relayer }: Context) {
  const { payment } = config
  if (payment === undefined || payment === 'unusable' || payment.facilitatorUrl !== undefined)
    throw refuse('PAYMENT_NOT_CONFIGURED')
  const { block, terms } = await getRegistrationTerms(chain)
  const requirements = requirementsOf(payment, terms.fee, block.timestamp)
  if (requirements === undefined) throw refuse('PAYMENT_NOT_CONFIGURED')
  return { requirements, now: block.timestamp, facilitator: selfHostedFacilitator(chain.rpc, relayer) }
}

type Asked = { paymentPayload: Record<string, unknown>; paymentRequirements: Record<string, unknown> }

/** The payment when it is one for this deployment's fee, or why it is not. */
function readPayment(asked: Asked, own: PaymentRequirements, now: bigint): { payment: Payment } | { reason: string } {
  for (const field of ['scheme', 'network', 'asset', 'payTo'] as const)
    if (`${asked.paymentRequirements[field]}`.toLowerCase() !== own[field].toLowerCase())
      return { reason: `invalid_payment_requirements: ${field}` }
  const parsed = parsePayment(asked.paymentPayload, own, now)
  if ('payment' in parsed) return parsed
  return {
    reason: 'malformed' in parsed ? 'invalid_payload' : `invalid_payment_requirements: ${parsed.mismatch.field}`,
  }
}

const common = { tag: 'Agents', errors: [400, 500, 502, 503] } as const

export const getFacilitatorSupport = defineOperation(
  {
    id: 'getFacilitatorSupport',
    method: 'get',
    path: '/facilitator/supported',
    summary: 'What the own x402 facilitator settles',
    description:
      'The payment kinds of the facilitator inside the Worker, where no hosted one is configured. It settles only as part of POST /agents/register.',
    ...common,
    status: 200,
    output: supported,
  },
  async context => {
    const { requirements } = await ownFacilitator(context)
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
    summary: 'Verify a payment of the registration fee',
    description: 'Says whether a payment of this deployment’s registration fee would be settled; nothing moves.',
    ...common,
    body: facilitatorBody,
    status: 200,
    output: verification,
  },
  async (context, asked) => {
    const { requirements, now, facilitator } = await ownFacilitator(context)
    const read = readPayment(asked, requirements, now)
    if ('reason' in read) return { isValid: false, invalidReason: read.reason }
    const verdict = await facilitator.verify(read.payment, requirements)
    if (verdict.is === 'unavailable') throw refuse('FACILITATOR_UNAVAILABLE')
    const { payer } = read.payment
    return verdict.is === 'valid' ? { isValid: true, payer } : { isValid: false, invalidReason: verdict.reason, payer }
  },
)
