import type { Address, Hex } from 'viem'
import { type Chain, unreachable } from './client.ts'

/** What the chain says of a transaction; without `block` it is pending. */
export type Transaction = {
  hash: Hex
  from: Address
  to: Address | null
  block: { number: bigint; timestamp: bigint; confirmations: bigint; success: boolean } | undefined
  /** Revert data of a reverted transaction; undefined when the node can no longer tell. */
  revertData: Hex | undefined
}

type RawTransaction = { hash: Hex; from: Address; to: Address | null; input: Hex; blockNumber: Hex | null }
type RawReceipt = { status: Hex; blockNumber: Hex; from: Address; to: Address | null }
type RawBlock = { number: Hex; timestamp: Hex }

/** Reads a transaction; undefined when the node does not know it. Throws CHAIN_UNREACHABLE. */
export async function findTransaction(chain: Chain, hash: Hex): Promise<Transaction | undefined> {
  const ask = <T>(method: string, params: unknown[]): Promise<T | null> =>
    (chain.client.request as (args: unknown) => Promise<T | null>)({ method, params }).catch(error => {
      throw unreachable(error)
    })
  const [transaction, receipt, head] = await Promise.all([
    ask<RawTransaction>('eth_getTransactionByHash', [hash]),
    ask<RawReceipt>('eth_getTransactionReceipt', [hash]),
    ask<Hex>('eth_blockNumber', []),
  ])
  if (transaction === null && receipt === null) return undefined
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

/** Why a transaction reverted: from its trace where the node has lost the state before its block. */
async function replay(chain: Chain, transaction: RawTransaction, receipt: RawReceipt): Promise<Hex | undefined> {
  const request = (method: string, params: readonly unknown[]) =>
    (chain.client.request as (args: unknown) => Promise<unknown>)({ method, params })
  return (await calledAgain(chain, transaction, receipt)) ?? (await tracedRevert(request, transaction.hash))
}

/** Calls a reverted transaction again on the block before it; undefined when it passes there or the node no longer can. */
async function calledAgain({ client }: Chain, { from, to, input }: RawTransaction, { blockNumber }: RawReceipt) {
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

/**
 * The revert data of a mined transaction from the node's own trace of it, which anvil keeps without the state; undefined
 * when the node does not trace. The default tracer, since anvil runs the others on the state before.
 */
export async function tracedRevert(
  request: (method: string, params: readonly unknown[]) => Promise<unknown>,
  hash: Hex,
): Promise<Hex | undefined> {
  const quiet = { disableStack: true, disableStorage: true, enableMemory: false }
  const trace = await request('debug_traceTransaction', [hash, quiet]).catch(() => undefined)
  const { failed, returnValue } = (trace ?? {}) as { failed?: boolean; returnValue?: string }
  if (failed !== true || returnValue === undefined) return undefined
  return returnValue.startsWith('0x') ? (returnValue as Hex) : `0x${returnValue}`
}

/** The revert data that an error of viem carries. */
export function revertDataOf(error: unknown): Hex | undefined {
  for (let cause = error as { data?: unknown; cause?: unknown } | undefined; cause; cause = cause.cause as never) {
    if (typeof cause.data === 'string' && /^0x[0-9a-f]*$/i.test(cause.data)) return cause.data as Hex
  }
  return undefined
}
