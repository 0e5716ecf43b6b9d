import { PLAIN_TOKEN } from '@agent-trading-service/protocol/token-description'
import { type Address, parseUnits } from 'viem'
import type { Accounts } from './accounts.ts'
import type {
  LiquidityPolicy,
  RiskTerms,
  SuiteConfig,
  TrackPolicy,
  TradePolicyLimits,
  VaultConfig,
} from './suite-config.ts'
import type { Uniswap } from './uniswap.ts'
import { reportedSource } from './verifier.ts'

export const usdc = (amount: string) => parseUnits(amount, 6)
export const usd = (price: string) => parseUnits(price, 8)
const DAY = 86_400

/** Another pool of a token. One without depth keeps its price, whatever that is. */
type OtherPool = { fee: number; depthUsdc: bigint; price?: string; isListed?: false }
/** A token with its pool, whose depth is in USDC base units per side. */
export type Listing = {
  symbol: string
  name: string
  decimals: number
  fee: number
  price: string
  depthUsdc: bigint
  otherPools?: readonly OtherPool[]
}

const deep = usdc('50000000')
export const listings: Listing[] = [
  { symbol: 'NVDA', name: 'NVIDIA', decimals: 18, fee: 500, price: '180.25', depthUsdc: deep },
  { symbol: 'AAPL', name: 'Apple', decimals: 18, fee: 500, price: '271.4', depthUsdc: deep },
  { symbol: 'MSFT', name: 'Microsoft', decimals: 18, fee: 500, price: '512.6', depthUsdc: deep },
  { symbol: 'AMZN', name: 'Amazon', decimals: 18, fee: 500, price: '244.2', depthUsdc: deep },
  { symbol: 'GOOGL', name: 'Alphabet', decimals: 18, fee: 500, price: '289.1', depthUsdc: deep },
  { symbol: 'META', name: 'Meta Platforms', decimals: 18, fee: 500, price: '641.75', depthUsdc: deep },
  { symbol: 'TSLA', name: 'Tesla', decimals: 8, fee: 500, price: '421.3', depthUsdc: deep },
  { symbol: 'COIN', name: 'Coinbase', decimals: 6, fee: 3000, price: '332.87', depthUsdc: deep },
  { symbol: 'PLTR', name: 'Palantir', decimals: 18, fee: 3000, price: '187.05', depthUsdc: deep },
  { symbol: 'HOOD', name: 'Robinhood', decimals: 18, fee: 3000, price: '138.6', depthUsdc: deep },
  // So thin that 1,000 USDC move it by 10 %: slippage is refused here for real.
  { symbol: 'COST', name: 'Costco', decimals: 18, fee: 3000, price: '921.5', depthUsdc: usdc('20000') },
]

/** Fee tiers that no factory has by itself. */
export const EXTRA_FEES = [100, 950_000]
/**
 * Besides the pool whose prices count: a better one, an empty one at an absurd price, one that takes 95 %, and one that
 * is not listed.
 */
const otherPools: readonly OtherPool[] = [
  { fee: 3_000, depthUsdc: deep },
  { fee: 500, depthUsdc: 0n, price: '1000000000000' },
  { fee: 950_000, depthUsdc: deep },
  { fee: 100, depthUsdc: deep, isListed: false },
]
/** The tokens with several pools each, as a public chain has them. */
export const listingsInTiers = listings.map(listing => ({ ...listing, fee: 10_000, otherPools }))

const SIMULATED = 0
const REAL = 1

const tracks = [
  { trackId: 0n, name: 'CHALLENGE', capitalMode: SIMULATED },
  { trackId: 1n, name: 'FUNDED', capitalMode: REAL },
  { trackId: 2n, name: 'PRIME', capitalMode: REAL },
]

// What differs from a real deployment (scripts/deploy.example.json) differs so that one person can try everything
// within minutes: no timelock delay, short windows, and limits that follow the jumps of `npm run devnet:price`.

/** Paper: 4 trades and 1.7 % of the allocation earned in a minute are enough to be promoted. */
const genesis: TrackPolicy = {
  trackId: 0n,
  initialAllocation: usdc('10000'),
  maxAllocation: usdc('25000'),
  maxDrawdownBps: 1_000n,
  maxTradeSizeBps: 100n,
  maxDailyTurnoverBps: 5_000n,
  maxDailyLossBps: 500n,
  evaluationPeriod: 60n,
  minTrades: 4n,
  promotionScore: 60n,
  active: true,
  maxStopLossBps: 5_000n,
  minTakeProfitBps: 100n,
  maxTakeProfitBps: 20_000n,
  requireStopLoss: true,
  requireTakeProfit: false,
}
/** Real capital from the first trade, in small amounts. */
const frontier: TrackPolicy = {
  ...genesis,
  initialAllocation: usdc('5000'),
  maxAllocation: usdc('10000'),
  maxDrawdownBps: 1_500n,
  maxDailyTurnoverBps: 2_500n,
  maxDailyLossBps: 400n,
  evaluationPeriod: BigInt(14 * DAY),
  minTrades: 20n,
  promotionScore: 70n,
  maxStopLossBps: 7_500n,
  minTakeProfitBps: 300n,
  maxTakeProfitBps: 50_000n,
}

// The price may jump by 30 % before a trade waits two seconds for the pool's average, and deadlines are not bounded.
export const limits: TradePolicyLimits = {
  maxEntrySlippageBps: 100,
  maxExitSlippageBps: 300,
  exitSlippageStartBps: 50,
  exitWideningSeconds: 10,
  minTradeUsdc: usdc('1'),
  maxSpotDeviationBps: 300,
  maxTwapDeviationBps: 3_000,
  twapWindow: 2,
  maxDeadlineSeconds: 0,
}

// The bound is roomy, since `npm run devnet:price` makes the pool trail the oracle. Frontier gives its small caps
// without a lock, so that a new agent trades real capital at once.
export const unsecured: RiskTerms = { firstLossBps: 0, maxWasteBps: 1_000 }

const ROUND_TRIP_SLIPPAGE_BPS = limits.maxEntrySlippageBps + limits.maxExitSlippageBps
/** The owner answers for the drawdown limit and one trade's slippage, which also cover the deepest stop. */
const secured = ({ maxDrawdownBps }: TrackPolicy): RiskTerms => ({
  ...unsecured,
  firstLossBps: Number(maxDrawdownBps) + ROUND_TRIP_SLIPPAGE_BPS,
})

// Prices are posted once and then on demand, so shares take them as old as trades do.
const liquidity: LiquidityPolicy = {
  maxPriceAge: 0,
  holdingTime: 8,
  maxMoveBps: 1_000,
  moveWindow: 60,
  moveCooldown: 5,
}

const vaultsByMode = [
  {
    slug: 'genesis',
    name: 'Genesis Vault',
    symbol: 'vGEN',
    assets: usdc('1000000'),
    tokens: ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA', 'COST'],
    firstTrackMode: SIMULATED,
    policies: [
      genesis,
      {
        ...genesis,
        trackId: 1n,
        initialAllocation: usdc('50000'),
        maxAllocation: usdc('100000'),
        maxDrawdownBps: 800n,
        maxTradeSizeBps: 250n,
        maxDailyLossBps: 400n,
        evaluationPeriod: BigInt(30 * DAY),
        minTrades: 25n,
        promotionScore: 75n,
        maxStopLossBps: 900n,
      },
      {
        ...genesis,
        trackId: 2n,
        initialAllocation: usdc('200000'),
        maxAllocation: usdc('500000'),
        maxDrawdownBps: 600n,
        maxTradeSizeBps: 500n,
        maxDailyTurnoverBps: 0n,
        maxDailyLossBps: 300n,
        evaluationPeriod: BigInt(30 * DAY),
        minTrades: 50n,
        promotionScore: 85n,
        maxStopLossBps: 700n,
      },
    ],
  },
  {
    slug: 'frontier',
    name: 'Frontier Vault',
    symbol: 'vFRO',
    assets: usdc('400000'),
    tokens: ['NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD'],
    firstTrackMode: REAL,
    policies: [
      frontier,
      {
        ...frontier,
        trackId: 1n,
        initialAllocation: usdc('20000'),
        maxAllocation: usdc('40000'),
        maxTradeSizeBps: 200n,
        minTrades: 40n,
        requireTakeProfit: true,
      },
      {
        ...frontier,
        trackId: 2n,
        initialAllocation: usdc('60000'),
        maxAllocation: usdc('120000'),
        maxTradeSizeBps: 400n,
        maxDailyLossBps: 0n,
        minTrades: 80n,
        promotionScore: 80n,
      },
    ],
  },
]

/** A vault with what is deposited into it, in USDC base units. */
export type SeedVault = Pick<VaultConfig, 'slug' | 'name' | 'symbol' | 'tokens' | 'tracks'> & { assets: bigint }

export const vaults: SeedVault[] = vaultsByMode.map(({ firstTrackMode, policies, ...vault }) => ({
  ...vault,
  tracks: policies.map(policy => ({
    policy,
    capitalMode: policy.trackId === 0n ? firstTrackMode : undefined,
    limits,
    risk: firstTrackMode === SIMULATED && policy.trackId > 0n ? secured(policy) : unsecured,
  })),
}))

export type SeedPool = Omit<Listing, 'price'> & {
  token: Address
  /** The beacon of a token with a multiplier; undefined for a plain one. */
  issuer: Address | undefined
  usdc: Address
  price: bigint
}

/** Returns the configuration of the embedded chain's suite. */
export function embeddedConfig(
  accounts: Accounts,
  around: {
    USDC: Address
    ERC8004IdentityRegistry: Address
    /** Signed reports are the source of every price if they can be verified, and the updater's key is otherwise. */
    reportVerifier: Address | undefined
    uniswap: Uniswap
    pools: SeedPool[]
  },
  seedVaults: readonly SeedVault[],
): SuiteConfig {
  const { admin, treasury, relayer, operator, executor, oracleUpdater, priceSetter } = accounts
  return {
    usdc: around.USDC,
    identityRegistry: around.ERC8004IdentityRegistry,
    uniswapFactory: around.uniswap.UniswapV3Factory,
    reportVerifier: around.reportVerifier,
    roles: {
      timelock: { delaySeconds: 0n, proposers: [admin.address], executors: [admin.address] },
      guardians: [operator.address],
      treasury: treasury.address,
      relayer: relayer.address,
      operators: {
        agentRegistry: [operator.address],
        allocationManager: [operator.address],
        tokenRegistry: [operator.address],
        tradeRouter: [operator.address],
        vaults: [operator.address],
      },
      registrars: [operator.address],
      executors: [executor.address],
      oracleUpdaters: [oracleUpdater.address, priceSetter.address],
      oracleForcers: [admin.address],
    },
    registrationFee: usdc('1'),
    keeperBounty: { bps: 10n, max: usdc('5') },
    tokens: around.pools.map(({ symbol, token, issuer, fee, otherPools = [] }, index) => ({
      symbol,
      address: token,
      fee,
      otherFees: otherPools.flatMap(({ fee, isListed }) => (isListed === false ? [] : [fee])),
      maxAge: DAY,
      maxDeviationBps: 2_000,
      deviationWindow: 2,
      secondOpinion: { twapWindow: 2 },
      twapRequired: false,
      source: around.reportVerifier && reportedSource(index, issuer !== undefined),
      description:
        issuer === undefined
          ? PLAIN_TOKEN
          : { kind: 'scaledUI', session: 'us-equity-24-5', powers: ['pause', 'block', 'burn', 'upgrade'], issuer },
    })),
    tracks,
    vaults: seedVaults.map(({ assets: _, ...vault }) => ({
      ...vault,
      maxPriceAge: BigInt(DAY),
      fees: { depositBps: 0n, withdrawBps: 10n },
      liquidity,
    })),
  }
}
