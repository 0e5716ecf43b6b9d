import type { ChainFacts } from './chain-facts.ts'
import { isEmbeddedChain } from './deployment-facts.ts'
import { publicChains } from './public-chains.ts'

/** Returns what is known of a chain; undefined if it has no file in `chains/`. */
export const publicChain = (chainId: number): ChainFacts | undefined =>
  publicChains.find(({ chain }) => chain.id === chainId)

/** Returns whether a chain's funds are worthless. One that is not known counts as one with real money. */
export const isWithoutMoney = (chainId: number): boolean =>
  isEmbeddedChain(chainId) || publicChain(chainId)?.chain.testnet === true
