import type { Address, Hex } from 'viem'
import { type Chain, isSilence, unreachable } from './client.ts'
import { revertDataOf } from './transactions.ts'

/**
 * Asks the chain whether an account's call would succeed now: undefined when it would, otherwise the revert data, where
 * there is some. Throws CHAIN_UNREACHABLE.
 */
export async function simulate(
  { client }: Chain,
  account: Address,
  call: { to: Address; data: Hex },
): Promise<{ data: Hex | undefined } | undefined> {
  try {
    await client.call({ account, ...call })
    return undefined
  } catch (error) {
    if (isSilence(error)) throw unreachable(error)
    return { data: revertDataOf(error) }
  }
}
