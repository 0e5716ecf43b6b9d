import type { PaymentPayload } from '@x402/core/types'
import { EVM_NETWORK_CHAIN_ID_MAP } from '@x402/evm/v1'
import { type Address, getAddress, type Hex, isAddress } from 'viem'
import { z } from 'zod'
import type { PaymentRequirements } from './requirements.ts'

/** A signed EIP-3009 transfer that says it meets the requirements; times are Unix seconds. */
export type Payment = {
  payer: Address
  /** The authorization's nonce: payer and nonce are a payment's identity. */
  nonce: Hex
  validBefore: bigint
  /** As version 2, whatever version was sent. */
  payload: PaymentPayload
}

/** Why a payment was not taken: it is malformed, or one of its fields is not what was asked. */
export type Mismatch = { field: string; given: string; expected: string }
export type Parsed = { payment: Payment } | { malformed: string } | { mismatch: Mismatch }

const address = z
  .string()
  .refine(value => isAddress(value, { strict: false }), 'must be an address')
  .transform(value => getAddress(value))
const uint256 = z
  .string()
  .regex(/^[0-9]{1,78}$/, 'must be a string of decimal digits')
  .refine(value => BigInt(value) < 1n << 256n, 'must be below 2^256')

const transfer = z.object({
  signature: z.string().regex(/^0x([0-9a-fA-F]{2}){1,4096}$/, 'must be hex'),
  authorization: z.object({
    from: address,
    to: address,
    value: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 32 bytes of hex')
      .transform(value => value.toLowerCase() as Hex),
  }),
})
const envelope = z.discriminatedUnion('x402Version', [
  z.object({
    x402Version: z.literal(2),
    accepted: z.object({
      scheme: z.string(),
      network: z.string(),
      asset: z.string(),
      amount: z.string(),
      payTo: z.string(),
    }),
    payload: transfer,
  }),
  z.object({ x402Version: z.literal(1), scheme: z.string(), network: z.string(), payload: transfer }),
])

// Version 1 names networks; these two it never named, and CAIP-2 is understood in their place too.
const chainIds: Record<string, number> = { ...EVM_NETWORK_CHAIN_ID_MAP, arbitrum: 42161, 'arbitrum-sepolia': 421614 }
const caip2Of = (network: string) => (Object.hasOwn(chainIds, network) ? `eip155:${chainIds[network]}` : network)

/** What a facilitator needs to bring a payment to the chain. */
const SETTLEMENT_SECONDS = 6n
/** Clocks of payers differ by less than this. */
const CLOCK_SECONDS = 3_600n

/** Reads a payment of either x402 version and holds it against the requirements, field by field. `now` is Unix seconds. */
export function parsePayment(given: unknown, required: PaymentRequirements, now: bigint): Parsed {
  const result = envelope.safeParse(given)
  if (!result.success) {
    const [issue] = result.error.issues
    return { malformed: `${issue?.path.join('.') || 'payment'}: ${issue?.message}` }
  }
  const { data } = result
  const { authorization, signature } = data.payload
  const accepted =
    data.x402Version === 2
      ? data.accepted
      : { ...required, scheme: data.scheme, network: caip2Of(data.network), amount: authorization.value }
  const fields: [field: string, given: string, expected: string][] = [
    ['scheme', accepted.scheme, required.scheme],
    ['network', accepted.network, required.network],
    ['asset', accepted.asset, required.asset],
    ['payTo', accepted.payTo, required.payTo],
    ['amount', accepted.amount, required.amount],
    ['authorization.to', authorization.to, required.payTo],
    ['authorization.value', authorization.value, required.amount],
  ]
  for (const [field, given, expected] of fields)
    if (given.toLowerCase() !== expected.toLowerCase()) return { mismatch: { field, given, expected } }

  const earliest = now + SETTLEMENT_SECONDS
  const latest = now + BigInt(required.maxTimeoutSeconds) + CLOCK_SECONDS
  const validAfter = BigInt(authorization.validAfter)
  const validBefore = BigInt(authorization.validBefore)
  if (validAfter > now)
    return { mismatch: { field: 'authorization.validAfter', given: `${validAfter}`, expected: `at most ${now}` } }
  if (validBefore < earliest || validBefore > latest) {
    const expected = `from ${earliest} to ${latest}`
    return { mismatch: { field: 'authorization.validBefore', given: `${validBefore}`, expected } }
  }
  return {
    payment: {
      payer: authorization.from,
      nonce: authorization.nonce,
      validBefore,
      payload: { x402Version: 2, accepted: required, payload: { signature, authorization } },
    },
  }
}
