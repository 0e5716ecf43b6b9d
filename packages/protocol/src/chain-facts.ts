import type { Address, Chain } from 'viem'

/**
 * What is known of a public chain beyond viem's definition, which has its id, name, block time, nodes, explorer and
 * Multicall3. A file of `chains/` states it for one chain, with sources; configuration, environments, examples, wallets
 * and docs/chains.md follow it.
 */
export type ChainFacts = {
  chain: Chain
  /** Its environment in wrangler.toml, and the name of its file. */
  environment: string
  /** Whether the sequencer makes a block only for a transaction. */
  makesBlocksOnDemand: boolean
  /** How long until a block cannot be reverted any more. */
  finality: string
  /** The usual gas price and the highest at which risk is taken, the default of GAS_PRICE_GWEI. */
  gasPrices: { expectedWei: bigint; maxWei: bigint }
  /**
   * The asset of vaults and fees, with the domain in which its permits and authorizations are signed. One that hides it
   * has neither `version()` nor `eip712Domain()`.
   */
  dollar: { symbol: string; address: Address; domain: { name: string; version: string }; hidesDomain: boolean }
  /** Uniswap v3, if the chain has it. */
  uniswap: { factory: Address; quoter: Address } | undefined
  /** Chainlink's feed of the sequencer's uptime, if the chain has one. */
  uptimeFeed: Address | undefined
  /** ERC-8004's registry of identities. */
  identityRegistry: Address
  /** Chainlink's verifier of signed price reports. */
  reportVerifier: Address
  /** The beacon of the chain's stock tokens, if one issuer has all of them. */
  stockIssuer: Address | undefined
  /** As far as it was measured. */
  publicNodeRefuses: string | undefined
}
