import type { Address, Hex } from 'viem'
import { feesOver, type TransactionFees } from '../chain/transaction-fees.ts'
import { unreachable } from '../rpc/node-errors.ts'
import {
  balanceRequest,
  blockRequest,
  chainIdRequest,
  priorityFeeRequest,
  transactionCountRequest,
} from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

/** The head block and the account at that block, from one request. `readAt` is in milliseconds. */
export type ChainHead = {
  number: number
  hash: Hex
  /** Unix seconds. */
  timestamp: number
  baseFee: bigint
  /** The priority fee that the node suggests; undefined if it was not asked. */
  suggestedPriorityFee?: bigint
  /** The account's next nonce. */
  nonce: number
  balance: bigint
  /** Whether transactions also need gas for their data on L1. */
  isArbitrum: boolean
  readAt: number
}

type HeadRequest = {
  address: Address
  chainId: number
  /** The account's next nonce as the lane knows it; 0 if it knows none. */
  nextNonce: number
  /** Whether to ask for the priority fee that the node suggests. */
  needsSuggestion: boolean
  /** Called with an implausibly high nonce. The node that returned it counts as failed. */
  onImplausibleNonce: (nonce: number) => void
}

/** The most nonces that an account can plausibly use between two heads, even if others have its key. */
const MAX_NONCE_JUMP = 1_000
/** How often a head is read again until two in a row agree on a high nonce. */
const MAX_PLAUSIBLE_READS = 3
/** Transaction pools accept a replacement only if both fees are at least a tenth higher. */
const REPLACEMENT_PERCENT = 125n
/** The highest suggestion that is followed: nobody gets the account's ether by suggesting a fee. 100 gwei. */
const MAX_SUGGESTED_PRIORITY_FEE = 100_000_000_000n

/**
 * Reads the head. While the lane knows no nonce, two reads in a row must agree on a high one: adopting a wrong nonce
 * would leave a gap that no transaction fills. Throws CHAIN_UNREACHABLE.
 */
export async function readPlausibleHead(rpc: RpcTransport, request: HeadRequest): Promise<ChainHead> {
  let previousNonce = 0
  for (let reads = 0; reads <= MAX_PLAUSIBLE_READS; reads++) {
    const head = await readHead(rpc, request)
    if (request.nextNonce > 0 || Math.abs(head.nonce - previousNonce) <= MAX_NONCE_JUMP) return head
    previousNonce = head.nonce
  }
  throw unreachable('the nodes show another nonce with each read')
}

/** Reads the head from a node of the chain whose nonce is plausible. */
async function readHead(
  rpc: RpcTransport,
  { address, chainId, nextNonce, needsSuggestion, onImplausibleNonce }: HeadRequest,
): Promise<ChainHead> {
  const maxNonce = nextNonce === 0 ? Number.MAX_SAFE_INTEGER : nextNonce + MAX_NONCE_JUMP
  const [, nonce, balance, latest, suggestion] = await rpc.batch(
    [
      chainIdRequest,
      transactionCountRequest(address),
      balanceRequest(address),
      blockRequest('latest'),
      needsSuggestion ? priorityFeeRequest : undefined,
    ] as const,
    ([id, count]) => {
      if (Number(id.result) !== chainId) return false
      const nonce = Number(count.result ?? 0)
      if (nonce > maxNonce) onImplausibleNonce(nonce)
      return nonce <= maxNonce
    },
  )
  const block = latest.result
  if (!block || nonce.error || balance.error) throw unreachable('the node did not return the whole head')
  return {
    number: Number(block.number),
    hash: block.hash,
    timestamp: Number(block.timestamp),
    baseFee: BigInt(block.baseFeePerGas ?? 0),
    ...(suggestion && { suggestedPriorityFee: min(BigInt(suggestion.result ?? 0), MAX_SUGGESTED_PRIORITY_FEE) }),
    nonce: Number(nonce.result),
    balance: BigInt(balance.result),
    isArbitrum: block.l1BlockNumber !== undefined && block.l1BlockNumber !== null,
    readAt: Date.now(),
  }
}

/** Returns the bid at a head: at least the configured priority fee, and what the node suggests if it was asked. */
export const feesAt = ({ baseFee, suggestedPriorityFee = 0n }: ChainHead, priorityFeeWei: bigint): TransactionFees =>
  feesOver(baseFee, max(priorityFeeWei, suggestedPriorityFee))

/** Returns the fees of a transaction that replaces one with the given fees. */
export const replacementFees = (fees: TransactionFees, replaced: TransactionFees): TransactionFees => ({
  maxFeePerGas: max(fees.maxFeePerGas, raised(replaced.maxFeePerGas)),
  maxPriorityFeePerGas: max(fees.maxPriorityFeePerGas, raised(replaced.maxPriorityFeePerGas)),
})

const raised = (fee: bigint) => (fee * REPLACEMENT_PERCENT) / 100n + 1n
const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)
