import type { Address } from 'viem'
import { type NodeReceipt, receiptRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'

const MAX_RECEIPTS_PER_BATCH = 100
/** How many requests a node answers one after another within the time of a batch. */
const MAX_RECEIPTS_ONE_BY_ONE = 16

/** Returns how many receipts to request at once: few from a node that accepts no batches. */
export const maxReceipts = (rpc: RpcTransport): number =>
  rpc.preferred()?.acceptsBatches ? MAX_RECEIPTS_PER_BATCH : MAX_RECEIPTS_ONE_BY_ONE

/**
 * Returns the receipts of attempts from a node on which the account's nonce is at least `nonce`: null for an attempt
 * that is not mined there, undefined if the node did not respond for it. Throws CHAIN_UNREACHABLE.
 */
export async function readReceipts(
  rpc: RpcTransport,
  { address, nonce, attempts }: { address: Address; nonce: number; attempts: readonly Attempt[] },
): Promise<(NodeReceipt | null | undefined)[]> {
  const [, ...receipts] = await rpc.batch(
    [transactionCountRequest(address), ...attempts.map(({ hash }) => receiptRequest(hash))],
    ([count]) => Number(count.result) >= nonce,
  )
  return receipts.map(({ result }) => result)
}
