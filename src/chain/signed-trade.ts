import type { Address, Hex } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tryDecodeArgs } from './encode-and-decode-call.ts'

/** What the signer of a trade asked for, as the calldata of the router carries it. Amounts are base units. */
export type SignedTrade = {
  token?: Address
  positionId?: bigint
  usdcAmount?: bigint
  minTokenOut?: bigint
  maxSlippageBps?: number
  exitBps?: number
  exits?: readonly { triggerType: number; triggerBps: bigint; exitBps: number }[]
}

/** Returns what was signed, from calldata of the router; undefined for another call. */
export function signedTradeIn(data: Hex): SignedTrade | undefined {
  const [signed] =
    tryDecodeArgs(tradeRouterAbi, 'openPosition', data) ??
    tryDecodeArgs(tradeRouterAbi, 'addToPosition', data) ??
    tryDecodeArgs(tradeRouterAbi, 'reducePosition', data) ??
    tryDecodeArgs(tradeRouterAbi, 'updateExitLadder', data) ??
    []
  return signed
}
