import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChainFacts } from '@agent-trading-service/protocol/chain-facts'
import { EMBEDDED_DOLLAR, isEmbeddedChain } from '@agent-trading-service/protocol/deployment-facts'
import { isWithoutMoney, publicChain } from '@agent-trading-service/protocol/known-chain'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { MIN_GUARDIANS, MIN_TIMELOCK_DELAY_SECONDS } from '@agent-trading-service/protocol/roles-of-powers'
import {
  ISSUER_POWERS,
  LISTING_SESSIONS,
  PLAIN_TOKEN,
  TOKEN_KINDS,
} from '@agent-trading-service/protocol/token-description'
import { deepestLossBps } from '@agent-trading-service/protocol/vault-track-config'
import { getAddress, type Hex, isAddress, isAddressEqual, isHex, zeroAddress } from 'viem'
import { z } from 'zod'
import type { SuiteConfig } from '../devnet/suite-config.ts'
import { namedAccounts, sharedKeys } from '../devnet/suite-roles.ts'

// Below it there are precompiles and the example's placeholders; their keys are unknown.
const FIRST_REAL_ADDRESS = 0x10000n
/** `TradePolicy`'s, where a track has no limits of its own. */
const DEFAULT_EXIT_SLIPPAGE_BPS = 300

const address = z
  .string()
  .refine(value => isAddress(value), 'must be an address with a right checksum')
  .transform(value => getAddress(value))
const units = z
  .string()
  .regex(/^[0-9]+$/, 'must be base units as digits')
  .transform(BigInt)
const bps = z.number().int().nonnegative().transform(BigInt)
const seconds = z.number().int().nonnegative()
const accounts = z.array(address).default([])
const small = z.number().int().nonnegative()

const MAX_STREAMS = 3
/** The schemas of reports that have a price of a stock; the first two bytes of a stream's id are its schema. */
const STREAM_ID = /^0x00(08|0a|0b)[0-9a-f]{60}$/
const isSharePrice = z.boolean()
const source = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('reports'),
    feedIds: z
      .array(
        z.string().refine((id): id is Hex => isHex(id) && STREAM_ID.test(id), 'must be a stream of schema 8, 10 or 11'),
      )
      .min(1)
      .max(MAX_STREAMS),
    maxSpreadBps: z.number().int().nonnegative().max(10_000),
    isSharePrice,
  }),
  z.strictObject({ kind: z.literal('feed'), aggregator: address, isSharePrice }),
])

const tradeLimits = z.strictObject({
  maxEntrySlippageBps: small,
  maxExitSlippageBps: small,
  exitSlippageStartBps: small,
  exitWideningSeconds: seconds,
  minTradeUsdc: units,
  maxSpotDeviationBps: small,
  maxTwapDeviationBps: small,
  twapWindow: seconds,
  maxDeadlineSeconds: seconds,
})

const trackPolicy = z.strictObject({
  trackId: bps,
  initialAllocation: units,
  maxAllocation: units,
  maxDrawdownBps: bps,
  maxTradeSizeBps: bps,
  maxDailyTurnoverBps: bps,
  maxDailyLossBps: bps,
  evaluationPeriod: seconds.transform(BigInt),
  minTrades: bps,
  promotionScore: bps,
  active: z.boolean(),
  maxStopLossBps: bps,
  minTakeProfitBps: bps,
  maxTakeProfitBps: bps,
  requireStopLoss: z.boolean(),
  requireTakeProfit: z.boolean(),
})

const capitalMode = z.union([z.literal(0), z.literal(1)])

const configFile = z.strictObject({
  chainId: z.number().int().positive(),
  embedded: z.boolean().default(false),
  usdc: address,
  identityRegistry: address.default(zeroAddress),
  uniswap: z.strictObject({ factory: address, quoter: address.optional() }),
  sequencerFeed: z.strictObject({ address, gracePeriodSeconds: seconds.transform(BigInt) }).optional(),
  blockUptime: z
    .strictObject({
      maxBlockMs: small.positive().transform(BigInt),
      maxGapSeconds: seconds.positive().transform(BigInt),
      gracePeriodSeconds: seconds.transform(BigInt),
    })
    .optional(),
  reportVerifier: address.optional(),
  roles: z.strictObject({
    timelock: z.strictObject({
      delaySeconds: seconds.transform(BigInt),
      proposers: z.array(address).min(1),
      executors: accounts,
    }),
    guardians: accounts,
    treasury: address,
    relayer: address,
    operators: z.strictObject({
      agentRegistry: accounts,
      allocationManager: accounts,
      tokenRegistry: accounts,
      tradeRouter: accounts,
      vaults: accounts,
    }),
    registrars: accounts,
    executors: accounts,
    oracleUpdaters: accounts,
    oracleForcers: accounts,
  }),
  registrationFee: units,
  keeperBounty: z.strictObject({ bps, max: units }),
  tokens: z.array(
    z.strictObject({
      symbol: z.string().min(1),
      address,
      fee: z.number().int(),
      otherFees: z.array(z.number().int().positive()).max(3).default([]),
      maxAge: seconds,
      maxDeviationBps: small,
      deviationWindow: seconds,
      secondOpinion: z.strictObject({ twapWindow: seconds }).optional(),
      twapRequired: z.boolean(),
      source: source.optional(),
      observations: z.number().int().positive().max(65_535),
      description: z
        .strictObject({
          kind: z.enum(TOKEN_KINDS),
          session: z.enum(LISTING_SESSIONS).default('us-equity-24-5'),
          powers: z.array(z.enum(ISSUER_POWERS)).default([]),
          issuer: address.optional(),
        })
        .transform(({ issuer, ...description }) => ({ ...description, issuer }))
        .default(PLAIN_TOKEN),
    }),
  ),
  tracks: z.array(z.strictObject({ trackId: bps, name: z.string().min(1).max(32), capitalMode })),
  vaults: z.array(
    z.strictObject({
      slug: z.string().regex(/^[a-z0-9-]{1,32}$/),
      name: z.string().min(1),
      symbol: z.string().min(1),
      maxPriceAge: seconds.transform(BigInt),
      fees: z.strictObject({ depositBps: bps, withdrawBps: bps, recipient: address.optional() }),
      liquidity: z.strictObject({
        maxPriceAge: seconds,
        holdingTime: seconds,
        maxMoveBps: small,
        moveWindow: seconds,
        moveCooldown: seconds,
      }),
      tokens: z.array(z.string()),
      tracks: z.array(
        z.strictObject({
          policy: trackPolicy,
          capitalMode: capitalMode.optional(),
          limits: tradeLimits.optional(),
          risk: z.strictObject({ firstLossBps: small, maxWasteBps: small }).optional(),
        }),
      ),
    }),
  ),
})
export type ConfigFile = z.output<typeof configFile>

const EXAMPLE = join(import.meta.dirname, 'deploy.example.json')
/** How long prices stay unusable after the sequencer has come back. */
const EXAMPLE_GRACE_SECONDS = 3_600
/** The shortest time without blocks that counts as a gap. */
const EXAMPLE_GAP_SECONDS = 300
/** Blocks may take this much of their usual time on average before it looks like a gap. */
const EXAMPLE_BLOCK_TIME_PERCENT = 125

/** Returns the example of a configuration with the addresses of a known chain. */
export function exampleFor(environment: string): z.input<typeof configFile> {
  const known = publicChains.find(chain => chain.environment === environment)
  const names = publicChains.map(({ environment }) => environment).join(', ')
  if (known === undefined) throw new Error(`There is no chain ${environment}: --example takes one of ${names}.`)
  const { chain, dollar, identityRegistry, reportVerifier, uniswap, uptimeFeed, stockIssuer } = known
  const maxBlockMs = maxBlockMsOf(known)
  const example: z.input<typeof configFile> = JSON.parse(readFileSync(EXAMPLE, 'utf8'))
  return {
    ...example,
    chainId: chain.id,
    usdc: dollar.address,
    identityRegistry,
    uniswap: uniswap ?? { factory: zeroAddress, quoter: zeroAddress },
    reportVerifier,
    tokens: example.tokens.map(({ description, ...token }) => ({
      ...token,
      ...(description && { description: { ...description, issuer: stockIssuer ?? description.issuer } }),
    })),
    ...(uptimeFeed && { sequencerFeed: { address: uptimeFeed, gracePeriodSeconds: EXAMPLE_GRACE_SECONDS } }),
    ...(maxBlockMs && {
      blockUptime: { maxBlockMs, maxGapSeconds: EXAMPLE_GAP_SECONDS, gracePeriodSeconds: EXAMPLE_GRACE_SECONDS },
    }),
  }
}

/** Returns the longest mean block time of a chain whose uptime is counted in blocks; undefined where it is not. */
function maxBlockMsOf({ chain, uptimeFeed, makesBlocksOnDemand }: ChainFacts): number | undefined {
  if (uptimeFeed || makesBlocksOnDemand || chain.blockTime === undefined) return undefined
  return Math.ceil((chain.blockTime * EXAMPLE_BLOCK_TIME_PERCENT) / 100)
}

/** Refuses another uptime feed or verifier than a known chain has, and reports that nothing verifies. */
export function checkChain(config: ConfigFile): void {
  const { chainId, sequencerFeed, blockUptime, reportVerifier, tokens } = config
  const facts = publicChain(chainId)
  const feed = facts?.uptimeFeed
  const problems: string[] = []
  if (feed !== undefined && sequencerFeed === undefined)
    problems.push(`sequencerFeed is missing; chain ${chainId} has the uptime feed ${feed}`)
  if (sequencerFeed && blockUptime) problems.push('sequencerFeed and blockUptime: a chain has one uptime feed')
  if (facts?.makesBlocksOnDemand && blockUptime)
    problems.push(`blockUptime: chain ${chainId} makes no blocks without transactions, so their number says nothing`)
  if (facts && reportVerifier && !isEmbedded(config) && !isAddressEqual(facts.reportVerifier, reportVerifier))
    problems.push(`reportVerifier is ${reportVerifier}; chain ${chainId} has ${facts.reportVerifier}`)
  const streams = tokens.flatMap(({ source }) => (source?.kind === 'reports' ? source.feedIds : []))
  if (streams.length > 0 && !reportVerifier)
    problems.push('reportVerifier is missing; it verifies the reports that are the source of some tokens')
  for (const { symbol, source, description } of tokens)
    if (source?.isSharePrice && description.kind !== 'scaledUI')
      problems.push(`${symbol}: isSharePrice needs a token with a multiplier, whose description.kind is scaledUI`)
  const shared = streams.find((id, index) => streams.indexOf(id) !== index)
  if (shared) problems.push(`the stream ${shared} is named twice; it is one token's in one session`)
  if (problems.length > 0) throw refusal(problems)
}

/** Reads the configuration of a deployment; throws with every value that is wrong. */
export function readConfig(path: string | undefined): ConfigFile {
  if (!path) throw new Error('Give --config, the JSON file of what to deploy (--example <environment> prints one).')
  const parsed = configFile.safeParse(JSON.parse(readFileSync(path, 'utf8')))
  if (!parsed.success) throw new Error(`${path} is not usable:\n${z.prettifyError(parsed.error)}`)
  return parsed.data
}

/** Whether one key may hold every power, and the timelock needs no delay. */
export const isEmbedded = ({ chainId, embedded, usdc }: ConfigFile): boolean =>
  isEmbeddedChain(chainId) || (embedded && (isWithoutMoney(chainId) || usdc === EMBEDDED_DOLLAR))

/** Refuses a configuration in which one key holds two powers, or in which the admin acts without a delay. */
export function checkPowers(config: ConfigFile): void {
  if (isEmbedded(config)) return
  const { roles } = config
  const problems = sharedKeys(roles)
  if (config.embedded) problems.push(`embedded must not be true: chain ${config.chainId} counts as one with real money`)
  for (const account of namedAccounts(roles)) {
    if (BigInt(account) < FIRST_REAL_ADDRESS)
      problems.push(`${account} is a placeholder of the example; name a real account`)
  }
  const { delaySeconds } = roles.timelock
  if (delaySeconds < MIN_TIMELOCK_DELAY_SECONDS) {
    problems.push(`roles.timelock.delaySeconds is ${delaySeconds}, it must be at least ${MIN_TIMELOCK_DELAY_SECONDS}`)
  }
  if (roles.guardians.length < MIN_GUARDIANS)
    problems.push(`roles.guardians names ${roles.guardians.length}; name ${MIN_GUARDIANS} who may pause and cancel`)
  if (problems.length > 0) throw refusal(problems)
}

/**
 * Refuses first-loss capital that a position's deepest stop exceeds, as the contracts do in the middle of a deployment.
 */
export function checkLocks({ vaults }: ConfigFile): void {
  const problems = vaults.flatMap(({ slug, tracks }) =>
    tracks.flatMap(({ policy, limits, risk }) => {
      const lossBps = deepestLossBps(policy, limits?.maxExitSlippageBps ?? DEFAULT_EXIT_SLIPPAGE_BPS)
      if (!risk?.firstLossBps || lossBps <= risk.firstLossBps) return []
      const loss = `a position can lose ${lossBps} bps at its stop and to its exit's slippage`
      return [`${slug}, track ${policy.trackId}: ${loss}, but firstLossBps is ${risk.firstLossBps}`]
    }),
  )
  if (problems.length > 0) throw refusal(problems)
}

/** Returns what `deploySuite` and `verifySuite` take. */
export function suiteConfig({ chainId: _, embedded: __, uniswap, tokens, ...config }: ConfigFile): SuiteConfig {
  return {
    ...config,
    uniswapFactory: uniswap.factory,
    tokens: tokens.map(({ observations: ___, ...token }) => token),
  }
}

/** Returns the error of a run that stops before its first transaction. */
export function refusal(problems: string[]): Error {
  return new Error(`Nothing was sent:\n- ${problems.join('\n- ')}`)
}
