import type { Address, Hex } from 'viem'
import { timeIfOld } from '../clock.ts'
import { callOnState } from '../rpc/call-on-state.ts'
import { callRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'

/**
 * Simulates an account's call on the state of a block, with the time at which the next one would execute it. Returns
 * undefined if it succeeds, otherwise its revert data, which is undefined if the node gives none. Throws
 * CHAIN_UNREACHABLE.
 */
export async function simulate(
  { rpc, makesBlocksOnDemand }: Chain,
  account: Address,
  { to, data }: { to: Address; data: Hex },
  block: Block,
): Promise<{ data: Hex | undefined } | undefined> {
  const state = { block: block.number, time: timeIfOld(block, { makesBlocksOnDemand }) }
  const { error } = await callOnState(rpc.call, state, at => callRequest({ from: account, to, data }, at))
  return error && { data: error.data }
}
