import type { Address } from 'viem'
import type { ContractErrorCode } from './decode-revert.ts'
import type { LadderBounds, LadderProblem } from './exit-ladder-validation.ts'
import type { Mandate } from './mandate.ts'
import type { PriceQuote } from './oracle-price.ts'
import type { DueExit, Position } from './position.ts'
import type { TradePolicy } from './trade-policy.ts'
import type { TrackConfig } from './vault-track-config.ts'

/** The errors of the service, not of a contract, that a check foretells. */
type ServiceCheckCode =
  | 'GAS_BUDGET_EXHAUSTED'
  | 'GAS_PRICE_TOO_HIGH'
  | 'INTAKE_CLOSED'
  | 'PRICE_UNSETTLED'
  | 'STOP_WITHIN_COSTS'
  | 'STOP_ABOVE_PRICE'

/**
 * One rule that the router applies to an intent. `limit`, `used` and `after` are figures in the rule's own unit
 * (amounts in USDC base units); `code` is the error that the intent would be refused with: one of the contracts, or of
 * the service.
 */
export type Check = {
  rule: string
  code: ContractErrorCode | ServiceCheckCode
  pass: boolean
  limit?: bigint
  used?: bigint
  after?: bigint
  problem?: LadderProblem
}

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
  /** Undefined in a deployment without the extension. */
  extension: ExtensionTerms | undefined
  /** Undefined if the intent names neither a token nor a position. */
  token: TokenTerms | undefined
  /** Undefined if the intent is not about an open position. */
  position: Position | undefined
  /** The position's due exit; undefined without a position or without the extension. */
  dueExit: DueExit | undefined
}

/**
 * What of an agent's waste counts, in USDC base units, and when none does, in Unix seconds; `maxUsdc` 0 is no bound.
 */
export type Waste = { usdc: bigint; maxUsdc: bigint; endsAt: bigint }

/** What the contracts of the extension check an intent against. */
export type ExtensionTerms = {
  /** The agent's `CapitalMode`. */
  capitalMode: number
  /** The allocation cap less the track's realized loss, in proportion if the vault's caps exceed its assets. */
  effectiveCap: bigint
  tradePolicy: TradePolicy
  /** Realized on the agent's track; `peakRealizedPnlUsdc` is its highest value, at least 0. */
  realizedPnlUsdc: bigint
  peakRealizedPnlUsdc: bigint
  waste: Waste
  /** The figures of the day before that in which a transaction would execute. */
  previousDay: { turnoverUsdc: bigint; realizedPnlUsdc: bigint }
  /** When a transaction would execute next, in Unix seconds: the timestamp of the block, unless it is old. */
  blockTime: bigint
  /** The present time in Unix seconds: that of the block, or later. */
  now: bigint
  /** Undefined in a deployment whose contracts know no mandates. */
  mandate: Mandate | undefined
}

/** The state of an intent's token. */
export type TokenTerms = {
  address: Address
  symbol: string
  decimals: number
  allowed: boolean
  quote: PriceQuote
  /** How many shares one token stands for, with 18 decimals. */
  multiplier: bigint
  /** An announced change of the multiplier; `effectiveAt` is Unix seconds. */
  pending: { multiplier: bigint; effectiveAt: bigint } | undefined
  /** The pool's prices, with 8 decimals; `twap` is 0 if the pool has no history. Undefined without the extension. */
  venuePrices: { spot: bigint; twap: bigint } | undefined
  /** Whether the token trades only while its pool has a time-weighted price. */
  isTwapRequired: boolean
  /** Whether the mandate of the agent's owner lets the agent buy the token. */
  isInMandate: boolean
  /** The agent's open position in the token; 0 if there is none. */
  openPositionId: bigint
  /** Tokens that the venue returns, by USDC amount; undefined if it cannot fill the amount. Empty without a quoter. */
  fills: Map<bigint, bigint | undefined>
  /** USDC that the venue returns for the tokens of a reduce; undefined without a quoter. */
  sale: { tokenIn: bigint; usdcOut: bigint | undefined } | undefined
}

/** Returns the bounds of an exit ladder under these terms. */
export const ladderBounds = ({
  trackConfig,
  extension,
}: Pick<TradingTerms, 'trackConfig' | 'extension'>): LadderBounds => ({
  ...trackConfig,
  stopsMustSellAll: extension !== undefined,
})
