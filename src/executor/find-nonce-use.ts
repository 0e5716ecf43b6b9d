import { type Address, getAddress } from 'viem'
import { blockTransactionsRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { ForeignTransaction } from './pause-rules.ts'

/** How many blocks back a transaction is searched: nodes keep the state of some hundred to thousand blocks. */
const MAX_BLOCKS = 4_096

/**
 * Finds the transaction with which an account used a nonce: bisects the account's transaction counts. Returns undefined if
 * the nodes no longer have the state. Throws CHAIN_UNREACHABLE.
 */
export async function findNonceUse(
  rpc: RpcTransport,
  { address, nonce, head }: { address: Address; nonce: number; head: number },
): Promise<ForeignTransaction | undefined> {
  let [low, high] = [Math.max(0, head - MAX_BLOCKS), head]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const { result } = await rpc.call(transactionCountRequest(address, middle)).catch(() => ({ result: undefined }))
    // A node without the state of a block has that of newer ones.
    if (result !== undefined && Number(result) > nonce) high = middle
    else low = middle + 1
  }
  const { result: block } = await rpc.call(blockTransactionsRequest(low))
  const transaction = block?.transactions.find(
    each => getAddress(each.from) === address && Number(each.nonce) === nonce,
  )
  return transaction && { hash: transaction.hash, to: transaction.to ? getAddress(transaction.to) : undefined }
}
