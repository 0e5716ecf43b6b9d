import type { Address, Hex } from 'viem'
import { callRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'

/**
 * Simulates an account's call on the state of a block. Returns undefined if it succeeds, otherwise its revert data, which is
 * undefined if the node gives none. Throws CHAIN_UNREACHABLE.
 */
export async function simulate(
  { rpc }: Chain,
  account: Address,
  { to, data }: { to: Address; data: Hex },
  { number }: Block,
): Promise<{ data: Hex | undefined } | undefined> {
  const { error } = await rpc.call(callRequest({ from: account, to, data }, number))
  return error && { data: error.data }
}
