import type { Address, Hex } from 'viem'
import {
  aboutStrangers,
  blockNumberRequest,
  blockRequest,
  callRequest,
  type NodeLog,
  type NodeReceipt,
  type NodeTransaction,
  receiptRequest,
  transactionRequest,
} from '../rpc/requests.ts'
import { traceRevertData } from '../rpc/trace-revert-data.ts'
import type { Chain } from './configured-chain.ts'

/** A transaction as the chain shows it; `block` is undefined while it is pending. Timestamps are Unix seconds. */
export type Transaction = {
  hash: Hex
  from: Address
  to: Address | null
  block: { number: bigint; timestamp: bigint; confirmations: bigint; success: boolean } | undefined
  /** Undefined if the node no longer has the transaction, but its receipt. */
  input: Hex | undefined
  logs: readonly NodeLog[]
  /** Revert data of a reverted transaction; undefined when the node no longer has the state or a trace. */
  revertData: Hex | undefined
  /** What a replay costs the node, and the characters of its calldata and logs: strangers choose both. */
  gasUsed: bigint
  characters: number
}

const PENDING = { block: undefined, revertData: undefined, gasUsed: 0n, characters: 0, logs: [] }

/** Returns a transaction, or undefined when the node does not know it. Throws CHAIN_UNREACHABLE. */
export async function findTransaction({ rpc }: Chain, hash: Hex): Promise<Transaction | undefined> {
  const requestedReceipt = aboutStrangers(receiptRequest(hash))
  const [transaction, first, head] = await Promise.all([
    rpc.read(aboutStrangers(transactionRequest(hash))),
    rpc.read(requestedReceipt),
    rpc.read(blockNumberRequest),
  ])
  const isLate = first === null && transaction !== null && transaction.blockNumber !== null
  const receipt = isLate ? await rpc.read(requestedReceipt, isPresent) : first
  if (receipt === null)
    return transaction === null
      ? undefined
      : { hash, from: transaction.from, to: transaction.to, input: transaction.input, ...PENDING }

  const success = receipt.status === '0x1'
  const number = BigInt(receipt.blockNumber)
  const newest = BigInt(head)
  const [block, revertData] = await Promise.all([
    rpc.read(blockRequest(number), isPresent),
    success || transaction === null ? undefined : findRevertData({ rpc }, transaction, receipt),
  ])
  return {
    hash,
    from: receipt.from,
    to: receipt.to,
    block: {
      number,
      timestamp: BigInt(block?.timestamp ?? 0),
      confirmations: newest >= number ? newest - number + 1n : 1n,
      success,
    },
    input: transaction?.input,
    logs: receipt.logs,
    revertData,
    gasUsed: BigInt(receipt.gasUsed),
    characters: receipt.logs.reduce((sum, { data }) => sum + data.length, transaction?.input.length ?? 0),
  }
}

/** Behind a load balancer, one replica may lack what another has shown. */
const isPresent = (result: unknown): boolean => result !== null

/** Replays a reverted transaction on the block before its own, or else reads its trace. */
async function findRevertData(
  { rpc }: Pick<Chain, 'rpc'>,
  { hash, from, to, input }: NodeTransaction,
  { blockNumber }: NodeReceipt,
): Promise<Hex | undefined> {
  const call = to === null ? { from, data: input } : { from, to, data: input }
  const replay = await rpc
    .call(aboutStrangers(callRequest(call, { block: BigInt(blockNumber) - 1n })))
    .catch(() => undefined)
  return replay?.error?.data ?? (await traceRevertData(rpc, hash))
}

/** Returns the logs of a mined transaction: null if it has no receipt, undefined if no node responds. */
export async function readReceiptLogs({ rpc }: Chain, hash: Hex): Promise<NodeLog[] | null | undefined> {
  const receipt = await rpc.read(receiptRequest(hash)).catch(() => undefined)
  return receipt === null ? null : receipt?.logs
}
