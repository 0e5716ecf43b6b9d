import type { Address, Hex } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import { balanceRequest, blockRequest, chainIdRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

/** The head block and the account at that block, from one request. `readAt` is in milliseconds. */
export type ChainHead = {
  number: number
  hash: Hex
  /** Unix seconds. */
  timestamp: number
  baseFee: bigint
  /** The account's next nonce. */
  nonce: number
  balance: bigint
  /** The hash of block 0. */
  genesis: Hex
  readAt: number
}

export type HeadCache = ReturnType<typeof createHeadCache>

/** Caches the chain's head. `onHead` is called with every head that is read, before it is returned. */
export function createHeadCache({
  rpc,
  address,
  chainId,
  onHead,
}: {
  rpc: RpcTransport
  address: Address
  chainId: number
  onHead: (head: ChainHead) => void
}) {
  let head: ChainHead | undefined
  let reading: Promise<ChainHead> | undefined

  async function read(): Promise<ChainHead> {
    const fresh = await readChainHead(rpc, address, chainId)
    onHead(fresh)
    head = fresh
    return fresh
  }

  /** Reads the head; a call during a read joins it. Throws CHAIN_UNREACHABLE. */
  function refresh(): Promise<ChainHead> {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  return {
    refresh,
    /** Returns a head that is at most this old. Throws CHAIN_UNREACHABLE. */
    within: async (maxAgeMs: number): Promise<ChainHead> =>
      head !== undefined && Date.now() - head.readAt <= maxAgeMs ? head : refresh(),
    /** Makes the next `within` read the chain. */
    expire() {
      if (head) head = { ...head, readAt: 0 }
    },
    /** Returns the last head that was read; undefined before the first. */
    last: () => head,
  }
}

async function readChainHead(rpc: RpcTransport, address: Address, chainId: number): Promise<ChainHead> {
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
