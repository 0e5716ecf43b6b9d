import { robinhoodTestnet } from 'viem/chains'
import type { ChainFacts } from '../chain-facts.ts'

export const chain: ChainFacts = {
  chain: robinhoodTestnet,
  environment: 'robinhood-testnet',
  makesBlocksOnDemand: true,
  finality: 'once Sepolia has finalized its batch',
  gasPrices: { expectedWei: 10_000_000n, maxWei: 100_000_000n },
  // Read on the chain in September 2026; faucet.paxos.com gives some.
  dollar: {
    symbol: 'USDG',
    address: '0x7E955252E15c84f5768B83c41a71F9eba181802F',
    domain: { name: 'Global Dollar', version: '1' },
  },
  uniswap: undefined,
  uptimeFeed: undefined,
  // github.com/erc-8004/erc-8004-contracts
  identityRegistry: '0x8004A818BFB912233c491871b3d84c89A494BD9e',
  // docs.chain.link/data-streams
  reportVerifier: '0x72790f9eB82db492a7DDb6d2af22A270Dcc3Db64',
  publicNode: undefined,
}
