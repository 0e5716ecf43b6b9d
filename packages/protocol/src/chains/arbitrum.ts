import { arbitrum } from 'viem/chains'
import type { ChainFacts } from '../chain-facts.ts'

export const chain: ChainFacts = {
  chain: arbitrum,
  environment: 'arbitrum',
  makesBlocksOnDemand: false,
  finality: 'some 13 minutes, once Ethereum has finalized its batch',
  // docs.arbitrum.io/how-arbitrum-works/gas-fees: the floor of Arbitrum One is 0.01 gwei.
  gasPrices: { expectedWei: 10_000_000n, maxWei: 100_000_000n },
  // developers.circle.com/stablecoins/usdc-contract-addresses
  dollar: {
    symbol: 'USDC',
    address: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    domain: { name: 'USD Coin', version: '2' },
  },
  // docs.uniswap.org/contracts/v3/reference/deployments/arbitrum-deployments
  uniswap: {
    factory: '0x1F98431c8aD98523631AE4a59f267346ea31F984',
    quoter: '0x61fFE014bA17989E743c5F6cB21bF9697530B21e',
  },
  // docs.chain.link/data-feeds/l2-sequencer-feeds
  uptimeFeed: '0xFdB631F5EE196F0ed6FAa767959853A9F217697D',
  // github.com/erc-8004/erc-8004-contracts
  identityRegistry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432',
  // docs.chain.link/data-streams/crypto-streams
  reportVerifier: '0x478Aa2aC9F6D65F84e09D9185d126c3a17c2a93C',
  publicNode: undefined,
}
