import { publicChains } from '@agent-trading-service/protocol/public-chains'
import type { PaymentPayload, PaymentRequired, PaymentRequirements as X402Requirements } from '@x402/core/types'
import { EVM_NETWORK_CHAIN_ID_MAP } from '@x402/evm/v1'
import { type Address, getAddress, type Hex, isAddress } from 'viem'
import { z } from 'zod'
import { clockSeconds } from '../clock.ts'
import type { PaymentConfig } from '../config/config.ts'
import { acceptedForm } from './payment-signature.ts'

/** What a payment must be, in x402 version 2. `extra` is the signing domain of the asset. */
export type PaymentRequirements = X402Requirements & { extra: { name: string; version: string } }

/** The registration fee of the FeeManager: base units of its asset, and who receives it. */
export type RegistrationFee = { amount: bigint; asset: Address; treasury: Address }

/**
 * Returns what a payment must be; undefined for a fee of zero. `chainTime` is that of the fee's chain, in Unix seconds.
 */
export function requirementsOf(
  config: PaymentConfig,
  fee: RegistrationFee,
  chainTime: bigint,
): PaymentRequirements | undefined {
  if (fee.amount === 0n) return undefined
  // Payers derive the expiry from their own clock. The time of a development chain may have been moved ahead of it.
  const secondsAhead = Math.max(0, Number(chainTime) - clockSeconds())
  return {
    scheme: 'exact',
    network: config.network,
    asset: config.asset ?? fee.asset,
    amount: `${fee.amount}`,
    payTo: config.payTo ?? fee.treasury,
    maxTimeoutSeconds: config.validitySeconds + secondsAhead,
    extra: { name: config.assetName, version: config.assetVersion },
  }
}

/** Returns the x402 object (version 2) that requests a payment. */
export const paymentRequired = (requirements: PaymentRequirements, url: string): PaymentRequired => ({
  x402Version: 2,
  resource: { url, description: 'Registration of one agent', mimeType: 'application/json' },
  accepts: [requirements],
})

/** A signed EIP-3009 transfer that claims to meet the requirements. Times are Unix seconds. */
export type Payment = {
  payer: Address
  /** The authorization's nonce. Payer and nonce identify a payment. */
  nonce: Hex
  validBefore: bigint
  /** In version 2, independent of the version that was sent. */
  payload: PaymentPayload
}

export type ParsedPayment =
  | { kind: 'valid'; payment: Payment }
  | { kind: 'malformed'; problem: string }
  /** A field is not as required. */
  | { kind: 'mismatch'; field: string; given: string; expected: string }

const address = z
  .string()
  .refine(value => isAddress(value, { strict: false }), 'must be an address')
  .transform(value => getAddress(value))
const uint256 = z
  .string()
  .regex(/^[0-9]{1,78}$/, 'must be a string of decimal digits')
  .refine(value => BigInt(value) < 1n << 256n, 'must be below 2^256')

const transfer = z.object({
  signature: z.string().regex(/^0x([0-9a-fA-F]{2}){0,4096}$/, 'must be hex'),
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

// Version 1 names networks. It has no names for most of ours, so CAIP-2 ids are accepted too.
const CHAIN_IDS: Record<string, number> = {
  ...EVM_NETWORK_CHAIN_ID_MAP,
  ...Object.fromEntries(publicChains.map(({ environment, chain }) => [environment, chain.id])),
}
const caip2Of = (network: string) => (Object.hasOwn(CHAIN_IDS, network) ? `eip155:${CHAIN_IDS[network]}` : network)

/** The time a facilitator needs to settle a payment. */
const MIN_SETTLEMENT_SECONDS = 6n
/** How far the clock of a payer may be off. */
const MAX_CLOCK_SKEW_SECONDS = 3_600n

/** Parses a payment of either x402 version and compares it with the requirements. `now` is in Unix seconds. */
export function parsePayment(given: unknown, required: PaymentRequirements, now: bigint): ParsedPayment {
  const result = envelope.safeParse(given)
  if (!result.success) {
    const [issue] = result.error.issues
    return { kind: 'malformed', problem: `${issue?.path.join('.') || 'payment'}: ${issue?.message}` }
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
    if (given.toLowerCase() !== expected.toLowerCase()) return { kind: 'mismatch', field, given, expected }

  const mismatch = (field: string, given: bigint, expected: string): ParsedPayment => ({
    kind: 'mismatch',
    field: `authorization.${field}`,
    given: `${given}`,
    expected,
  })
  const earliest = now + MIN_SETTLEMENT_SECONDS
  const latest = now + BigInt(required.maxTimeoutSeconds) + MAX_CLOCK_SKEW_SECONDS
  const validAfter = BigInt(authorization.validAfter)
  const validBefore = BigInt(authorization.validBefore)
  if (validAfter > now) return mismatch('validAfter', validAfter, `at most ${now}`)
  if (validBefore < earliest || validBefore > latest)
    return mismatch('validBefore', validBefore, `from ${earliest} to ${latest}`)
  const canonical = acceptedForm(signature as Hex, authorization, required)
  return {
    kind: 'valid',
    payment: {
      payer: authorization.from,
      nonce: authorization.nonce,
      validBefore,
      payload: { x402Version: 2, accepted: required, payload: { signature: canonical, authorization } },
    },
  }
}
