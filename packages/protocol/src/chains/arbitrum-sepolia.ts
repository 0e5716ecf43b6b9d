import { arbitrumSepolia } from 'viem/chains'
import type { ChainFacts } from '../chain-facts.ts'

export const chain: ChainFacts = {
  chain: arbitrumSepolia,
  environment: 'arbitrum-sepolia',
  makesBlocksOnDemand: false,
  finality: 'once Sepolia has finalized its batch',
  gasPrices: { expectedWei: 100_000_000n, maxWei: 1_000_000_000n },
  // developers.circle.com/stablecoins/usdc-contract-addresses
  dollar: {
    symbol: 'USDC',
    address: '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d',
    domain: { name: 'USD Coin', version: '2' },
  },
  // docs.uniswap.org/contracts/v3/reference/deployments/arbitrum-deployments
  uniswap: {
    factory: '0x248AB79Bbb9bC29bB72f7Cd42F17e054Fc40188e',
    quoter: '0x2779a0CC1c3e0E44D2542EC3e79e3864Ae93Ef0B',
  },
  uptimeFeed: undefined,
  // github.com/erc-8004/erc-8004-contracts
  identityRegistry: '0x8004A818BFB912233c491871b3d84c89A494BD9e',
  // docs.chain.link/data-streams/crypto-streams
  reportVerifier: '0x2ff010DEbC1297f19579B4246cad07bd24F2488A',
  publicNode: undefined,
}
