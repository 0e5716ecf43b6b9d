import { robinhood } from 'viem/chains'
import type { ChainFacts } from '../chain-facts.ts'

export const chain: ChainFacts = {
  chain: robinhood,
  environment: 'robinhood',
  makesBlocksOnDemand: false,
  // docs.robinhood.com/chain
  finality: 'some 13 minutes, once Ethereum has finalized its batch',
  // 0.058 gwei on 21 July 2026; the chain's fees grew 82-fold within eleven days of August.
  gasPrices: { expectedWei: 60_000_000n, maxWei: 5_000_000_000n },
  // docs.robinhood.com/chain. The token answers neither `version()` nor `eip712Domain()`; this domain gives its
  // DOMAIN_SEPARATOR.
  dollar: {
    symbol: 'USDG',
    address: '0x5fc5360D0400a0Fd4f2af552ADD042D716F1d168',
    domain: { name: 'Global Dollar', version: '1' },
  },
  // github.com/Uniswap/contracts
  uniswap: {
    factory: '0x1f7d7550B1b028f7571E69A784071F0205FD2EfA',
    quoter: '0x33e885eD0Ec9bF04EcfB19341582aADCb4c8A9E7',
  },
  uptimeFeed: undefined,
  // github.com/erc-8004/erc-8004-contracts
  identityRegistry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432',
  // docs.chain.link/data-streams
  reportVerifier: '0xcE73c8ad08CBDEaCa6078BF0627C8fe0a9a536E7',
  publicNode: '10,000 results of logs; up to half of the log requests at any pace; state older than minutes',
}
