import type { Address, Hex } from 'viem'
import type { RoleName } from './roles-of-powers.ts'
import type { Domain } from './typed-data.ts'
import type { TrackConfig } from './vault-track-config.ts'
import type { WiringRule } from './wiring.ts'

/** The chain id of the embedded chain, whose keys are public. */
const EMBEDDED_CHAIN_ID = 31337

/** Returns whether a chain is the embedded one, where missing limits and shared keys endanger no money. */
export const isEmbeddedChain = (chainId: number): boolean => chainId === EMBEDDED_CHAIN_ID

/**
 * The dollar of embedded chains, whatever their id: the first contract of a key that everybody has, so no deployment
 * with money uses it.
 */
export const EMBEDDED_DOLLAR: Address = '0x5FbDB2315678afecb367f032d93F642f64180aa3'

/** The purpose of an account of the service. */
export type AccountPurpose = 'executor' | 'relayer' | 'updater' | 'keeper' | 'reporter'
export type ServiceAccount = { address: Address; purpose: AccountPurpose }

/** What a getter must return, and what it returns; `actual` is undefined if the contract lacks the getter. */
export type WiringFact = WiringRule & { expected: Address; actual: Address | undefined }

/** Who administers a contract, and who is to follow. */
type AdminFact = { contract: string; admin: Address | undefined; pending: Address | undefined }

/** A role that an account of the service has. */
type RoleFact = ServiceAccount & { contract: string; role: RoleName }

/** How the oracle checks the price of a token; undefined without the extension. Seconds, basis points. */
export type PriceCheckFact = {
  symbol: string
  maxAge: bigint
  maxDeviationBps: bigint
  hasSecondOpinion: boolean | undefined
}

/** The limits of a track of a vault. */
export type TrackFact = {
  vault: string
  trackId: number
  config: TrackConfig
  capitalMode: number | undefined
  policy: PolicyLimits | undefined
  /** Shares of the allocation cap; 0 is none. Undefined without the extension. */
  risk: RiskTerms | undefined
}

/** What an owner locks for its agent's losses, and how much the agent's fills may waste before buying stops. */
export type RiskTerms = { firstLossBps: number; maxWasteBps: number }

/** The limits of the trade policy that can be switched off. 0 is no limit. */
export type PolicyLimits = {
  maxEntrySlippageBps: number
  maxExitSlippageBps: number
  minTradeUsdc: bigint
  maxSpotDeviationBps: number
  maxTwapDeviationBps: number
  maxDeadlineSeconds: number
}

/** When a vault makes and redeems shares; undefined without the extension. */
export type VaultPolicyFact = {
  vault: string
  holdingTime: number | undefined
  maxMoveBps: number | undefined
  maxPriceAge: bigint
  liquidityPaused: boolean
  isBreakerOpen: boolean
  /** The zero address if the vault names none; undefined for a vault from before queues. */
  requestQueue: Address | undefined
}

export type FeeFact = {
  amount: bigint
  treasury: Address
  relayer: Address
  asset: Address
  /** The domain separator of the asset; undefined if it has none. */
  assetDomainSeparator: Hex | undefined
}

/** What the chain says about a deployment, at one block. */
export type DeploymentFacts = {
  chainId: number
  /** The block that the facts are of; its timestamp is Unix seconds. */
  block: { number: bigint; timestamp: bigint }
  /** Every contract by name, including contracts that only the chain names. */
  contracts: Partial<Record<string, Address>>
  vaults: Record<string, Address>
  wiring: WiringFact[]
  admins: AdminFact[]
  /** Undefined if the admin is no timelock. */
  timelock: { address: Address; delaySeconds: bigint } | undefined
  roles: RoleFact[]
  isRegistryPaused: boolean
  /** What the registry names as the order book, the zero address for none; undefined if it knows none. */
  orderBook: { address: Address; isExecutor: boolean } | undefined
  fee: FeeFact | undefined
  domains: { contract: string; address: Address; domain: Domain | undefined }[]
  prices: PriceCheckFact[]
  tracks: TrackFact[]
  vaultPolicies: VaultPolicyFact[]
}
