import type { Address, Hex } from 'viem'
import { refuse } from '../errors.ts'
import { type Chain, unreachable } from './client.ts'

/** What the chain says of a transaction; without `block` it is pending. */
export type Transaction = {
  hash: Hex
  from: Address
  to: Address | null
  block: { number: bigint; timestamp: bigint; confirmations: bigint; success: boolean } | undefined
  /** Revert data of a reverted transaction, found by calling it again on the block before. */
  revertData: Hex | undefined
}

type RawTransaction = { hash: Hex; from: Address; to: Address | null; input: Hex; blockNumber: Hex | null }
type RawReceipt = { status: Hex; blockNumber: Hex; from: Address; to: Address | null }
type RawBlock = { number: Hex; timestamp: Hex }

/** Reads a transaction. Throws TRANSACTION_NOT_FOUND. */
export async function getTransaction(chain: Chain, hash: Hex): Promise<Transaction> {
  const ask = <T>(method: string, params: unknown[]): Promise<T | null> =>
    (chain.client.request as (args: unknown) => Promise<T | null>)({ method, params }).catch(error => {
      throw unreachable(error)
    })
  const [transaction, receipt, head] = await Promise.all([
    ask<RawTransaction>('eth_getTransactionByHash', [hash]),
    ask<RawReceipt>('eth_getTransactionReceipt', [hash]),
    ask<Hex>('eth_blockNumber', []),
  ])
  if (transaction === null && receipt === null) throw refuse('TRANSACTION_NOT_FOUND', { txHash: hash })
  const { from, to } = (receipt ?? transaction) as RawReceipt
  if (receipt === null) return { hash, from, to, block: undefined, revertData: undefined }

  const success = receipt.status === '0x1'
  const [block, revertData] = await Promise.all([
    ask<RawBlock>('eth_getBlockByNumber', [receipt.blockNumber, false]),
    success || transaction === null ? undefined : replay(chain, transaction, receipt),
  ])
  const number = BigInt(receipt.blockNumber)
  const newest = BigInt(head ?? receipt.blockNumber)
  return {
    hash,
    from,
    to,
    block: {
      number,
      timestamp: BigInt(block?.timestamp ?? '0x0'),
      confirmations: newest >= number ? newest - number + 1n : 1n,
      success,
    },
    revertData,
  }
}

/** Calls a reverted transaction again on the block before it, for the reason; undefined when the node no longer can. */
async function replay({ client }: Chain, { from, to, input }: RawTransaction, { blockNumber }: RawReceipt) {
  try {
    await client.call({
      account: from,
      ...(to && { to }),
      data: input,
      blockNumber: BigInt(blockNumber) - 1n,
    })
    return undefined
  } catch (error) {
    return revertDataOf(error)
  }
}

/** The revert data that an error of viem carries. */
export function revertDataOf(error: unknown): Hex | undefined {
  for (let cause = error as { data?: unknown; cause?: unknown } | undefined; cause; cause = cause.cause as never) {
    if (typeof cause.data === 'string' && /^0x[0-9a-f]*$/i.test(cause.data)) return cause.data as Hex
  }
  return undefined
}
