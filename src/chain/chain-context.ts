import type { Config } from '../config/config.ts'
import type { Chain, TradingChain } from './configured-chain.ts'
import type { MinBlocks } from './min-blocks.ts'
import type { ReadCache } from './read-cache.ts'

/** The part of the context that reads the chain. A getter throws a refusal if the deployment lacks the capability. */
export type ChainContext = {
  readonly config: Config
  /** Responses about the newest block, cached in this isolate. */
  readonly readCache: ReadCache
  /** The newest blocks that this isolate has shown of agents and accounts. */
  readonly minBlocks: MinBlocks
  readonly chain: Chain
  /** The chain with its trading contracts. */
  readonly trading: TradingChain
}
