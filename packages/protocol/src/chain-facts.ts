import type { Address, Chain } from 'viem'
import { isEmbeddedChain } from './deployment-facts.ts'
import { publicChains } from './public-chains.ts'

/**
 * What is known of a public chain beyond viem's definition, which has its id, name, block time, nodes, explorer and
 * Multicall3. A file of `chains/` states it for one chain, with its sources; configuration, environments, examples,
 * wallets and docs/chains.md follow it.
 */
export type ChainFacts = {
  chain: Chain
  /** Its environment in wrangler.toml. */
  environment: string
  /** Whether the sequencer makes a block only for a transaction. */
  makesBlocksOnDemand: boolean
  /** How long until a block cannot be reverted any more. */
  finality: string
  /** The usual gas price and the highest at which risk is taken, the default of GAS_PRICE_GWEI. */
  gasPrices: { expectedWei: bigint; maxWei: bigint }
  /** The asset of vaults and fees, with the domain in which its permits and authorizations are signed. */
  dollar: { symbol: string; address: Address; domain: { name: string; version: string } }
  /** Uniswap v3, if the chain has it. */
  uniswap: { factory: Address; quoter: Address } | undefined
  /** Chainlink's feed of the sequencer's uptime, if the chain has one. */
  uptimeFeed: Address | undefined
  /** ERC-8004's registry of identities. */
  identityRegistry: Address
  /** Chainlink's verifier of signed price reports. */
  reportVerifier: Address
  /** What the chain's public node refuses, as far as it was measured. */
  publicNode: string | undefined
}

/** Returns what is known of a chain; undefined if it has no file in `chains/`. */
export const publicChain = (chainId: number): ChainFacts | undefined =>
  publicChains.find(({ chain }) => chain.id === chainId)

/** Ids that nodes of a developer's machine have beside the embedded chain's. */
const LOCAL_CHAIN_IDS = [31_338, 1_337]

/** Returns whether a chain's funds are worthless. One that is not known counts as one with real money. */
export const isWithoutMoney = (chainId: number): boolean =>
  isEmbeddedChain(chainId) || LOCAL_CHAIN_IDS.includes(chainId) || publicChain(chainId)?.chain.testnet === true
