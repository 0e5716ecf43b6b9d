import type { Address, Hex } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import { balanceRequest, blockRequest, chainIdRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

/** The chain as the lane last saw it, all of one round trip. The nonce is the account's next; `readAt` is in milliseconds. */
export type Head = {
  number: number
  hash: Hex
  timestamp: number
  baseFee: bigint
  nonce: number
  balance: bigint
  genesis: Hex
  readAt: number
}

/** Reads the head in one batch; throws CHAIN_UNREACHABLE when no node of this chain answers. */
export async function readHead(rpc: RpcTransport, address: Address, chainId: number): Promise<Head> {
  const [, nonce, balance, latest, genesis] = await rpc.batch(
    [
      chainIdRequest,
      transactionCountRequest(address),
      balanceRequest(address),
      blockRequest('latest'),
      blockRequest(0),
    ],
    ([id]) => Number(id.result) === chainId,
  )
  const block = latest.result
  const first = genesis.result
  if (!block || !first || nonce.error || balance.error) throw unreachable('the node did not return the whole head')
  return {
    number: Number(block.number),
    hash: block.hash,
    timestamp: Number(block.timestamp),
    baseFee: BigInt(block.baseFeePerGas ?? 0),
    nonce: Number(nonce.result),
    balance: BigInt(balance.result),
    genesis: first.hash,
    readAt: Date.now(),
  }
}
