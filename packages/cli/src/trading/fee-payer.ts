import { formatUsdc, parseUsdc, type RegistrationQuote } from '@agent-trading-service/client'
import type { Payer } from '@agent-trading-service/client/pay'
import { type Address, getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import type { Signer } from '../keys/signer.ts'
import type { FeePins } from './pins.ts'

/** The largest registration fee that is paid unless the user names another; USDC. */
export const DEFAULT_MAX_FEE = '5'

/** For how long a payment may be valid, in seconds from the chain's present. */
const MAX_FEE_VALIDITY_SECONDS = 900

/** What a registration costs, to whom and where. `network` is a CAIP-2 id. */
export type Fee = { amount: bigint; network: string; asset: Address; payTo: Address; validitySeconds: number }

/** What a fee looks like: a service could say with words what nobody pays. */
const address = z.string().refine(text => isAddress(text, { strict: false }), 'an address')
const schema = z.object({
  amount: z
    .string()
    .regex(/^\d{1,78}$/, 'digits')
    .transform(BigInt),
  network: z.string().regex(/^eip155:\d{1,20}$/, 'a chain such as eip155:1'),
  asset: address.transform(text => getAddress(text)),
  payTo: address.transform(text => getAddress(text)),
  validitySeconds: z.int(),
})

/**
 * Returns the fee of a registration; undefined if none is due. Throws `FEE_MISMATCH` for one that cannot be paid, and
 * `FEE_TOO_HIGH` above the given USDC.
 */
export function feeOf({ x402, registrationFee }: RegistrationQuote, maxFee: string): Fee | undefined {
  const { enabled, network, payTo, requirements } = x402
  if (!enabled) return undefined
  const { data: fee, error } = schema.safeParse({
    amount: requirements?.amount ?? registrationFee.amount,
    network: requirements?.network ?? network,
    asset: requirements?.asset ?? registrationFee.tokenAddress,
    payTo: requirements?.payTo ?? payTo,
    validitySeconds: requirements?.maxTimeoutSeconds ?? 0,
  })
  if (error) {
    const [issue] = error.issues
    throw new Failure('mismatch', `${issue?.path} of the fee is not ${issue?.message}. Nothing was signed.`, {
      code: 'FEE_MISMATCH',
      remedy: 'Ask the operator. If the service names the same again, do not trust it.',
    })
  }
  if (fee.amount > parseUsdc(maxFee))
    throw new Failure(
      'payment',
      `The registration costs ${formatUsdc(fee.amount)} USDC; at most ${maxFee} are allowed.`,
      {
        code: 'FEE_TOO_HIGH',
        remedy: 'Pass --max-fee to allow it.',
      },
    )
  return fee
}

/**
 * Throws `FEE_MISMATCH` if a service takes its fee elsewhere than it did before, and `FEE_VALID_TOO_LONG`.
 * `secondsAhead` is how far the chain's clock is ahead of this machine's, from which payers count.
 */
export function assertFee(
  { network, asset, payTo, validitySeconds }: Fee,
  pinned: FeePins,
  secondsAhead: number,
): void {
  const fields = [
    ['network', pinned.network, network],
    ['asset', pinned.asset, asset],
    ['payTo', pinned.payTo, payTo],
  ] as const
  for (const [name, expected, given] of fields)
    if (expected !== undefined && expected.toLowerCase() !== `${given}`.toLowerCase())
      throw new Failure('mismatch', `The ${name} of the fee is ${given}; expected ${expected}. Nothing was signed.`, {
        code: 'FEE_MISMATCH',
        remedy: 'If the operator confirms it, correct `fee` of the service in deployments.json.',
      })
  const maximum = MAX_FEE_VALIDITY_SECONDS + secondsAhead
  if (validitySeconds > maximum)
    throw new Failure(
      'mismatch',
      `The payment of the fee would be valid for ${validitySeconds} seconds; at most ${maximum} are allowed. Nothing was signed.`,
      { code: 'FEE_VALID_TOO_LONG', remedy: "Ask the operator. If the chain's clock is ahead, pass --rpc." },
    )
}

/** Returns a payer of exactly that fee. The x402 packages are loaded only where a fee is due. */
export async function createFeePayer(fee: Fee, payer: Signer, secondsAhead: number): Promise<Payer> {
  const { createPayer } = await import('@agent-trading-service/client/pay')
  const { amount, network, asset, payTo } = fee
  return createPayer({
    chainId: Number(network.replace('eip155:', '')),
    asset,
    payTo,
    maxAmount: amount,
    maxValiditySeconds: MAX_FEE_VALIDITY_SECONDS + secondsAhead,
    account: await payer.unlock(),
  })
}
