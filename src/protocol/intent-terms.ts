import type { Address } from 'viem'
import type { Position } from './position.ts'
import type { PriceQuote } from './price-quote.ts'
import type { TrackConfig } from './track-config.ts'

/** An agent's allocation. `status` is an `AllocationStatus`; amounts are USDC base units. */
export type Allocation = { cap: bigint; used: bigint; status: number }

/** The on-chain state that the router checks an intent against. Amounts are USDC base units. */
export type TradingTerms = {
  registryPaused: boolean
  /** `status` is an `AgentStatus`. */
  agent: { status: number }
  allocation: Allocation
  trackConfig: TrackConfig
  trackActive: boolean
  vault: { tradingPaused: boolean; totalAssets: bigint; idleAssets: bigint }
  dailyTurnoverUsdc: bigint
  dailyRealizedPnlUsdc: bigint
  /** Undefined if the intent names neither a token nor a position. */
  token: TokenTerms | undefined
  /** Undefined if the intent is not about an open position. */
  position: Position | undefined
}

/** The state of an intent's token. */
export type TokenTerms = {
  address: Address
  symbol: string
  decimals: number
  allowed: boolean
  quote: PriceQuote
  /** The agent's open position in the token; 0 if there is none. */
  openPositionId: bigint
  /** Tokens that the venue returns, by USDC amount; undefined if it cannot fill the amount. Empty without a quoter. */
  fills: Map<bigint, bigint | undefined>
  /** USDC that the venue returns for the tokens of a reduce; undefined without a quoter. */
  sale: { tokenIn: bigint; usdcOut: bigint | undefined } | undefined
}
