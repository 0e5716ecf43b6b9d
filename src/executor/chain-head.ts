import type { Address, Hex } from 'viem'
import { type Answer, type Rpc, Unreachable } from '../rpc/json-rpc.ts'

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

type Block = { number: Hex; hash: Hex; timestamp: Hex; baseFeePerGas?: Hex }

/** Reads the head in one batch; throws Unreachable when no node of this chain answers. */
export async function readHead(rpc: Rpc, address: Address, chainId: number): Promise<Head> {
  const isOfChain = ([id]: Answer[]) => Number(id?.result) === chainId
  const [, nonce, balance, latest, genesis] = await rpc.batch(
    [
      { method: 'eth_chainId', params: [] },
      { method: 'eth_getTransactionCount', params: [address, 'latest'] },
      { method: 'eth_getBalance', params: [address, 'latest'] },
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
      { method: 'eth_getBlockByNumber', params: ['0x0', false] },
    ],
    isOfChain,
  )
  const block = latest?.result as Block | null | undefined
  const first = genesis?.result as Block | null | undefined
  if (!block || !first || nonce?.error || balance?.error) throw new Unreachable()
  return {
    number: Number(block.number),
    hash: block.hash,
    timestamp: Number(block.timestamp),
    baseFee: BigInt(block.baseFeePerGas ?? 0),
    nonce: Number(nonce?.result),
    balance: BigInt(balance?.result as Hex),
    genesis: first.hash,
    readAt: Date.now(),
  }
}
