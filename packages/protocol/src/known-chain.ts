import type { ChainFacts } from './chain-facts.ts'
import { isEmbeddedChain } from './deployment-facts.ts'
import { publicChains } from './public-chains.ts'

/** Returns what is known of a chain; undefined if it has no file in `chains/`. */
export const publicChain = (chainId: number): ChainFacts | undefined =>
  publicChains.find(({ chain }) => chain.id === chainId)

/** Other chains on a developer's machine: a second embedded one, and that of `geth --dev`. */
const LOCAL_CHAIN_IDS = [31_338, 1_337]

/** Returns whether a chain's funds are worthless. One that is not known counts as one with real money. */
export const isWithoutMoney = (chainId: number): boolean =>
  isEmbeddedChain(chainId) || LOCAL_CHAIN_IDS.includes(chainId) || publicChain(chainId)?.chain.testnet === true
