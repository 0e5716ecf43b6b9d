import type { ChainConfig } from '../config/config.ts'
import type { TradingContracts } from '../config/variables.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'

/** The block that values were read from. The timestamp is Unix seconds. */
export type Block = { number: bigint; timestamp: bigint }

/** A configured chain: its contracts, and the transport to its nodes. */
export type Chain = Omit<ChainConfig, 'rpcUrls'> & {
  rpc: RpcTransport
  trading: TradingContracts | undefined
  /** Reads of the newest block pass over nodes that have not reached this one. */
  minBlock?: bigint | undefined
  /** Returns the ancestor of a reorg that has lately removed a block, as far as the index knows of one. */
  ancestorOf?: ((block: bigint) => Promise<bigint | undefined>) | undefined
}

/** A chain whose trading contracts are configured. */
export type TradingChain = Chain & { trading: TradingContracts }

/**
 * Creates a chain from its configuration. Nothing is read yet. `timeoutMs` bounds each request to its nodes; those of background
 * work give way to others.
 */
export const createChain = (
  { rpcUrls, ...chain }: ChainConfig,
  trading: TradingContracts | undefined,
  options: { timeoutMs?: number; isBackground?: boolean } = {},
): Chain => ({
  ...chain,
  trading,
  rpc: createTransport(rpcUrls, { ...options, chainId: chain.id, makesBlocksOnDemand: chain.makesBlocksOnDemand }),
})
