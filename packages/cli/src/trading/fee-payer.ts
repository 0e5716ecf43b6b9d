import { formatUsdc, parseUsdc, type RegistrationQuote } from '@agent-trading-service/client'
import type { Payer } from '@agent-trading-service/client/pay'
import type { Address } from 'viem'
import { Failure } from '../failure.ts'
import type { Signer } from '../keys/signer.ts'

/** The largest registration fee that is paid unless the user names another; USDC. */
export const DEFAULT_MAX_FEE = '5'

/** What a registration costs, to whom and where. */
export type Fee = { amount: bigint; asset: Address; payTo: Address; chainId: number }

/** Returns the fee of a registration; undefined if none is due. Throws `FEE_TOO_HIGH` above the given USDC. */
export function feeOf({ x402, registrationFee }: RegistrationQuote, maxFee: string): Fee | undefined {
  const { enabled, network, payTo, requirements } = x402
  if (!enabled) return undefined
  const amount = BigInt(requirements?.amount ?? registrationFee.amount)
  if (amount > parseUsdc(maxFee))
    throw new Failure('payment', `The registration costs ${formatUsdc(amount)} USDC; at most ${maxFee} are allowed.`, {
      code: 'FEE_TOO_HIGH',
      remedy: 'Pass --max-fee to allow it.',
    })
  return {
    amount,
    asset: (requirements?.asset ?? registrationFee.tokenAddress) as Address,
    payTo: (requirements?.payTo ?? payTo) as Address,
    chainId: Number(`${network}`.replace('eip155:', '')),
  }
}

/** Returns a payer of exactly that fee. The x402 packages are loaded only where a fee is due. */
export async function createFeePayer({ amount, ...fee }: Fee, payer: Signer): Promise<Payer> {
  const { createPayer } = await import('@agent-trading-service/client/pay')
  return createPayer({ ...fee, maxAmount: amount, account: await payer.unlock() })
}
