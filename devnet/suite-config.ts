import type { TokenDescription } from '@agent-trading-service/protocol/token-description'
import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import { type Address, type Hex, zeroAddress } from 'viem'

/** Limits of one track in one vault: `VaultTrackConfig` without the vault it is set for. */
export type TrackPolicy = Omit<TrackConfig, 'vault'>

/** `ITradePolicy.Limits`: the prices and sizes at which a track trades. */
export type TradePolicyLimits = {
  maxEntrySlippageBps: number
  maxExitSlippageBps: number
  exitSlippageStartBps: number
  exitWideningSeconds: number
  minTradeUsdc: bigint
  maxSpotDeviationBps: number
  maxTwapDeviationBps: number
  twapWindow: number
  maxDeadlineSeconds: number
}

/** `IVaultTrackRegistry.RiskTerms`; 0 switches a term off. */
export type RiskTerms = { firstLossBps: number; maxWasteBps: number }

/** `IMandateVault.LiquidityPolicy`: when a vault makes and redeems shares. Times are seconds. */
export type LiquidityPolicy = {
  maxPriceAge: number
  holdingTime: number
  maxMoveBps: number
  moveWindow: number
  moveCooldown: number
}

/** Where a token's prices come from; `IPriceOracle.Source` without the updater. */
export type PriceSource = {
  /** Whether the price is one of a share, which the token's multiplier turns into one of the token. */
  isSharePrice: boolean
} & (
  | {
      kind: 'reports'
      /** The streams for regular hours, and of 24/5 for extended hours and the night, in this order. */
      feedIds: readonly Hex[]
      /** The widest difference of bid and ask, relative to the price; 0 for no bound. */
      maxSpreadBps: number
    }
  | { kind: 'feed'; aggregator: Address }
)

export type TokenConfig = {
  symbol: string
  address: Address
  /** The fee tier of the token's pool with USDC, which exists and is initialized. */
  fee: number
  /** The fee tiers of the other pools in which it trades where they bring more, at most three. */
  otherFees?: readonly number[] | undefined
  maxAge: number
  /** The largest move of the posted price within half of `deviationWindow` seconds; both 0 for no bound. */
  maxDeviationBps: number
  deviationWindow: number
  /** Prices deposits and redemptions with the pool's average as well. */
  secondOpinion?: { twapWindow: number } | undefined
  /** Refuses trades while the pool has no average price. */
  twapRequired: boolean
  /** The updater posts the prices when it is left out. */
  source?: PriceSource | undefined
  /** What the registry records of the token; a plain one without an issuer when it is left out. */
  description?: TokenDescription | undefined
}

export type VaultConfig = {
  slug: string
  name: string
  symbol: string
  maxPriceAge: bigint
  /** Fees stay in the vault for the other holders unless there is a recipient. */
  fees: { depositBps: bigint; withdrawBps: bigint; recipient?: Address | undefined }
  liquidity: LiquidityPolicy
  tokens: string[]
  tracks: {
    policy: TrackPolicy
    /** 0 simulated, 1 real; the track type's own when it is left out. */
    capitalMode?: number | undefined
    /** The policy contract's defaults when they are left out. */
    limits?: TradePolicyLimits | undefined
    /** First-loss capital and the bound of waste; both off when they are left out. */
    risk?: RiskTerms | undefined
  }[]
}

/** The accounts of each power. On a real chain, every power has its own key or multisig. */
export type SuiteRoles = {
  /**
   * The admin of every contract: proposers schedule, and executors (any account when there are none) execute after the
   * delay.
   */
  timelock: { delaySeconds: bigint; proposers: Address[]; executors: Address[] }
  /** Pause the registry and the vaults, and cancel operations of the timelock; resume nothing. */
  guardians: Address[]
  treasury: Address
  relayer: Address
  operators: {
    agentRegistry: Address[]
    allocationManager: Address[]
    tokenRegistry: Address[]
    tradeRouter: Address[]
    vaults: Address[]
  }
  registrars: Address[]
  executors: Address[]
  oracleUpdaters: Address[]
  oracleForcers: Address[]
}

/** What is deployed, and the contracts it uses that exist already. Amounts are USDC base units, ages are seconds. */
export type SuiteConfig = {
  usdc: Address
  /** The ERC-8004 identity registry; the zero address switches linking off. */
  identityRegistry: Address
  uniswapFactory: Address
  sequencerFeed?: { address: Address; gracePeriodSeconds: bigint } | undefined
  /** Where there is no such feed, a `BlockUptimeFeed` takes its place. */
  blockUptime?: { maxBlockMs: bigint; maxGapSeconds: bigint; gracePeriodSeconds: bigint } | undefined
  /** The contract that verifies signed reports; needed by tokens with reports as their source. */
  reportVerifier?: Address | undefined
  roles: SuiteRoles
  registrationFee: bigint
  keeperBounty: { bps: bigint; max: bigint }
  tokens: TokenConfig[]
  tracks: { trackId: bigint; name: string; capitalMode: number }[]
  vaults: VaultConfig[]
}

/** The contracts that every deployment has. */
export type ProtocolContracts = Record<
  | 'AgentRegistry'
  | 'VaultTrackRegistry'
  | 'AllocationManager'
  | 'FeeManager'
  | 'TokenRegistry'
  | 'PriceOracle'
  | 'PositionManager'
  | 'TradeRouter'
  | 'TradeRouterLens'
  | 'SwapAdapter',
  Address
>

/** The contracts that ours adds. A deployment may have no order book, and few have a block count. */
export type ExtensionContracts = Record<
  'Timelock' | 'TradePolicy' | 'PromotionCriteria' | 'OwnerControls' | 'ServiceReader',
  Address
> & { OrderBook?: Address; BlockUptimeFeed?: Address }

export type SuiteContracts = ProtocolContracts & ExtensionContracts

export type Suite = { contracts: SuiteContracts; vaults: Record<string, Address> }

/** A suite that may lack the extension. */
export type ProtocolSuite = {
  contracts: ProtocolContracts & Partial<ExtensionContracts>
  vaults: Record<string, Address>
}

export const hasExtension = (suite: ProtocolSuite): suite is Suite => suite.contracts.Timelock !== undefined

/** Returns what `setSource` takes. */
export function encodeSource(source: PriceSource | undefined) {
  const reports = source?.kind === 'reports' ? source : undefined
  return {
    kind: { updater: 0, reports: 1, feed: 2 }[source?.kind ?? 'updater'],
    feedIds: reports?.feedIds ?? [],
    aggregator: source?.kind === 'feed' ? source.aggregator : zeroAddress,
    maxSpreadBps: reports?.maxSpreadBps ?? 0,
    isSharePrice: source?.isSharePrice ?? false,
  }
}

/** The address of a configured token; throws when a vault names one that is not configured. */
export function tokenAddress({ tokens }: SuiteConfig, symbol: string): Address {
  const token = tokens.find(token => token.symbol === symbol)
  if (!token) throw new Error(`A vault allows ${symbol}, which is not among the tokens.`)
  return token.address
}
