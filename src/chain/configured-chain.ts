import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import type { RoundData } from '@agent-trading-service/protocol/oracle-price'
import type { Domain } from '@agent-trading-service/protocol/typed-data'
import type { Address } from 'viem'
import type { ChainConfig } from '../config/config.ts'
import type { TradingContracts } from '../config/variables.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'
import type { AgentRecord } from './agent-record.ts'
import type { PriceNeed, PriceSource, Urgency } from './carried-prices.ts'
import { newest } from './min-blocks.ts'

/** The block that values were read from. The timestamp is Unix seconds. */
export type Block = { number: bigint; timestamp: bigint }

/** A configured chain: its contracts, the transport to its nodes, and what was learned from them. */
export type Chain = Omit<ChainConfig, 'rpcUrls'> & {
  rpc: RpcTransport
  memory: ChainMemory
  trading: TradingContracts | undefined
  /** Reads of the newest block pass over nodes that have not reached this one. */
  minBlock?: bigint | undefined
  /** Returns the ancestor of a reorg that has lately removed a block, as far as the index knows of one. */
  ancestorOf?: ((block: bigint) => Promise<bigint | undefined>) | undefined
  /** The provider of signed reports; undefined where nothing reads them. */
  reports?: { isConfigured: boolean; carriedFor(need: PriceNeed, urgency?: Urgency): Promise<CarriedPrices> }
  /** Prices that reads begin with, as a transaction would that brings them along. */
  carried?: CarriedPrices | undefined
}

/** What a chain has shown that no later block changes, and guesses that save a read. A new isolate begins without. */
type ChainMemory = {
  /** The names of the configured contracts whose code was found. */
  contractsWithCode: Set<string>
  /** Symbols by token, from the configuration and from reads. */
  symbols: Map<Address, string>
  decimals: Map<Address, number>
  /** How many shares tokens stood for at the last read, with 18 decimals. */
  multipliers: Map<Address, bigint>
  /** Tokens that a node could not call, until when they are left out (epoch ms). */
  hostileContracts: Map<Address, number>
  /** A domain is fixed in the code of its contract. */
  routerDomain?: Domain
  orderBookDomain?: Domain
  /** Whether the contracts have capital modes: a router that consults a trade policy has them. */
  hasCapitalModes?: boolean
  /** A guess from the last read: the registry of tokens knows their multipliers, so the tokens are not asked. */
  registryHasMultipliers?: boolean
  /** A guess: the registries only grow. */
  registryEntries?: { vaults: Address[]; tokens: Address[] }
  /** The last calls of the registries (`registryCalls`): hundreds, of which most return what they did before. */
  registryCalls?: { of: { vaults: Address[]; tokens: Address[] }; calls: object }
  /** The last values of the registries (`readRegistries`), when they were read (epoch ms), and the calls of prices. */
  settings?: { readAt: number; values: object; priceCalls: object }
  /** Guesses: the oracle's uptime feed, and the vaults' queues of requests, by vault. */
  uptimeFeed?: Address
  requestQueues: Map<Address, Address>
  /** A guess, by token: the fee of its pool, its price with 8 decimals, and its decimals. */
  markets: Map<Address, { fees: readonly number[]; price: bigint; decimals: number }>
  /** Where the prices of the known tokens come from, and when that was read (epoch ms). Changes are public for days. */
  priceSources: { readAt: number; byToken: Map<Address, PriceSource> }
  /** What the chain names, by address in lower case, and when that was read (epoch ms). */
  named?: { readAt: number; byAddress: ReadonlyMap<string, { name: string; contract?: string }> }
  /** When the provider of reports last failed a read that went on without it (epoch ms). */
  reportFailureAt?: number
  /** A guess, by position: a reorg may give its id away again. */
  tradedTokens: Map<bigint, Address>
  /** Reads an agent's signing terms together with those that other requests read at the same time. */
  readSigningTerms?: (query: SigningQuery) => Promise<SigningRead>
  /** Reads a market at the end of a block together with those that other requests read at the same time. */
  readMarkets?: (query: MarketQuery) => Promise<MarketRead | undefined>
}

/** What an intent trades: a token, or that of a position. */
export type Traded = { token: Address } | { positionId: bigint }

export type SigningQuery = {
  agentId: bigint
  minBlock: bigint | undefined
  traded: Traded | undefined
  isPurchase: boolean
}

/** What an intent's signature is verified against; `domain` is undefined if it is known. */
export type SigningRead = {
  block: Block
  record: AgentRecord | undefined
  nonce: bigint
  domain: Domain | undefined
  /** The position that the intent trades, and the price of the token that it buys: that of a position is a guess. */
  position: { token: Address } | undefined
  market: { token: Address; round: RoundData | undefined; effectiveAt: bigint } | undefined
}

/** The token of a position at a block; undefined if it is not known. */
export type MarketQuery = { positionId: bigint; token: Address | undefined; blockNumber: bigint }
export type MarketRead = { token: Address; decimals: number | undefined; price: bigint | undefined }

/** A chain whose trading contracts are configured. */
export type TradingChain = Chain & { trading: TradingContracts }

/** Returns a chain whose reads pass over nodes that have not reached a block, in addition to its own `minBlock`. */
export const notBefore = <C extends Chain>(chain: C, { number }: Pick<Block, 'number'>): C => ({
  ...chain,
  minBlock: newest(chain.minBlock, number),
})

/**
 * Creates a chain from its configuration. Nothing is read yet. `timeoutMs` bounds each request to its nodes; those of
 * background work give way to others.
 */
export const createChain = (
  { rpcUrls, ...chain }: ChainConfig,
  trading: TradingContracts | undefined,
  { reports, ...options }: { timeoutMs?: number; isBackground?: boolean; reports?: Chain['reports'] } = {},
): Chain => ({
  ...chain,
  ...(reports && { reports }),
  trading,
  memory: {
    contractsWithCode: new Set(),
    symbols: new Map(Object.entries(chain.tokens).map(([symbol, address]) => [address, symbol])),
    decimals: new Map(),
    multipliers: new Map(),
    hostileContracts: new Map(),
    requestQueues: new Map(),
    markets: new Map(),
    priceSources: { readAt: 0, byToken: new Map() },
    tradedTokens: new Map(),
  },
  rpc: createTransport(rpcUrls, { ...options, chainId: chain.id, makesBlocksOnDemand: chain.makesBlocksOnDemand }),
})
