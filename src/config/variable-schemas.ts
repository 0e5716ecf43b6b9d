import { getAddress, type Hex, isAddress } from 'viem'
import { z } from 'zod'
import { ORDER } from '../crypto/secp256k1-javascript.ts'

// Schemas of the Worker's variables, which are all strings. Messages say what a value must be, but never contain the
// value, which may be a secret.

const CANONICAL_MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** Chains with real money: no price provider repeats old prices there, and no stranger refreshes them. */
export const REAL_MONEY_CHAINS = [42161]
/**
 * Variables required for payment on another chain, because the Worker knows only its own chain's contracts and settles
 * only there.
 */
const REQUIRED_ELSEWHERE = ['X402_ASSET', 'X402_PAY_TO', 'X402_FACILITATOR_URL', 'X402_RPC_URL'] as const

/** Parses a variable that holds JSON. */
export const json = <Schema extends z.ZodType>(schema: Schema) =>
  z.string().transform((text, ctx): z.output<Schema> => {
    try {
      return schema.parse(JSON.parse(text))
    } catch {
      ctx.addIssue({ code: 'custom', message: 'must be the JSON that the deployment file holds' })
      return z.NEVER
    }
  })

const address = z
  .string()
  .refine(value => isAddress(value, { strict: false }), 'must be an address')
  .transform(value => getAddress(value))

/** A URL without a trailing slash. */
export const httpUrl = z.url({ protocol: /^https?$/ }).transform(url => url.replace(/\/$/, ''))

const rpcUrls = commaSeparated().pipe(z.array(z.url({ protocol: /^https?$/ })).min(1))

/** One or more private keys, in lower case. */
export const privateKeys = commaSeparated().pipe(
  z.array(
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/)
      .refine(isUsableKey, 'must be a secp256k1 private key')
      .transform(value => value.toLowerCase() as Hex),
  ),
)

function commaSeparated() {
  return z.string().transform(text => text.split(',').map(part => part.trim()))
}

function isUsableKey(key: string): boolean {
  const value = BigInt(key)
  return value > 0n && value < ORDER
}

const chainContracts = z.object({
  AgentRegistry: address,
  VaultTrackRegistry: address,
  FeeManager: address,
  TokenRegistry: address,
  PriceOracle: address,
  Multicall3: address.default(CANONICAL_MULTICALL3),
  SwapAdapter: address.optional(),
  QuoterV2: address.optional(),
  USDC: address.optional(),
  ERC8004IdentityRegistry: address.optional(),
  ERC8004ReputationRegistry: address.optional(),
})

export const tradingContracts = z.object({
  TradeRouter: address,
  TradeRouterLens: address,
  PositionManager: address,
  AllocationManager: address,
})

export type Contracts = z.output<typeof chainContracts>
export type TradingContracts = z.output<typeof tradingContracts>

export const chainVariables = z.object({
  CHAIN_ID: z.coerce.number().int().positive(),
  RPC_URL: rpcUrls,
  CONTRACTS: json(chainContracts),
  TOKENS: json(z.record(z.string(), address)).default({}),
  VAULTS: json(z.record(z.string(), address)).default({}),
  START_BLOCK: z.coerce.bigint().min(0n).default(0n),
  CHAIN_MAY_RESTART: z.enum(['true', 'false'], 'must be true or false').default('false'),
})

export type ChainVariables = z.output<typeof chainVariables>

/** CONTRACTS with any part of the trading contracts. */
export const tradingVariables = z.object({ CONTRACTS: json(tradingContracts.partial()) })

/** The price provider of a deployment on a chain. */
export const priceProviderVariables = (chainId: number | undefined) =>
  z
    .discriminatedUnion('PRICE_PROVIDER', [
      z.object({ PRICE_PROVIDER: z.literal('local') }),
      z.object({ PRICE_PROVIDER: z.literal('http'), PRICE_PROVIDER_URL: httpUrl }),
      z.object({
        PRICE_PROVIDER: z.literal('coingecko'),
        PRICE_PROVIDER_URL: httpUrl.default('https://api.coingecko.com/api/v3'),
      }),
      z.object({
        PRICE_PROVIDER: z.literal('finnhub'),
        PRICE_PROVIDER_URL: httpUrl.default('https://finnhub.io/api/v1'),
      }),
    ])
    .refine(({ PRICE_PROVIDER }) => PRICE_PROVIDER !== 'local' || !REAL_MONEY_CHAINS.includes(chainId ?? 0), {
      path: ['PRICE_PROVIDER'],
      message: 'must not be local on a chain with real money',
    })

export const priceProviderIds = json(z.record(z.string(), z.string().min(1)))

/** The payment of fees: on the deployment's own chain, or on another network with all variables that it requires. */
export const paymentVariables = ({ CHAIN_ID }: ChainVariables) =>
  z
    .object({
      X402_ENABLED: z.literal('true', 'must be true or false'),
      X402_NETWORK: z
        .string()
        .regex(/^eip155:[1-9][0-9]*$/, 'must be a CAIP-2 network such as eip155:8453')
        .transform(network => network as `eip155:${number}`)
        .optional(),
      X402_ASSET: address.optional(),
      X402_ASSET_NAME: z.string().default('USD Coin'),
      X402_ASSET_VERSION: z.string().default('2'),
      X402_PAY_TO: address.optional(),
      X402_FACILITATOR_URL: httpUrl.optional(),
      X402_FACILITATOR_TIMEOUT_MS: z.coerce.number().int().min(100).max(60_000).default(15_000),
      X402_RPC_URL: rpcUrls.optional(),
      X402_VALIDITY_SECONDS: z.coerce.number().int().min(30).max(3_600).default(300),
    })
    .superRefine((variables, ctx) => {
      if (variables.X402_NETWORK === undefined || variables.X402_NETWORK === `eip155:${CHAIN_ID}`) return
      for (const name of REQUIRED_ELSEWHERE)
        if (variables[name] === undefined)
          ctx.addIssue({ code: 'custom', path: [name], message: 'must be set: the fee is paid on another chain' })
    })

/** Webhooks of a deployment. Only an embedded chain may deliver to private addresses and over plain HTTP. */
export const webhookVariables = (mayRestart: boolean) =>
  z
    .object({
      WEBHOOK_RESOLVER_URL: httpUrl.default('https://cloudflare-dns.com/dns-query'),
      WEBHOOK_LOCAL_TARGETS: z.enum(['true', 'false'], 'must be true or false').default('false'),
      MAX_WEBHOOKS: z.coerce.number().int().min(1).max(100_000).default(1_000),
      MAX_WEBHOOKS_PER_AGENT: z.coerce.number().int().min(1).max(20).default(5),
    })
    .refine(({ WEBHOOK_LOCAL_TARGETS }) => WEBHOOK_LOCAL_TARGETS !== 'true' || mayRestart, {
      path: ['WEBHOOK_LOCAL_TARGETS'],
      message: 'must not be true unless CHAIN_MAY_RESTART is',
    })

/** Base URLs by chain id. */
export const deployments = json(z.record(z.string(), httpUrl))

/** Gas that may be used within a minute and within a day. */
export const gasBudget = z
  .string()
  .regex(/^\d{1,15},\d{1,15}$/, 'must be gas per minute and gas per day, such as 6000000,300000000')
  .transform(text => {
    const [perMinute, perDay] = text.split(',').map(Number)
    return { perMinute, perDay } as { perMinute: number; perDay: number }
  })
export type GasBudget = z.output<typeof gasBudget>

export const priceRefreshIntervalSeconds = z.coerce.number().int().min(0).max(86_400)
/** A rate limit; 0 means no limit. */
export const requestsPerMinute = z.coerce.number().int().min(0).max(1_000_000)
export const eventStreamObjects = z.coerce.number().int().min(1).max(256)
export const burstSeconds = z.coerce.number().int().min(0).max(60)
export const maxParallelRequests = z.coerce.number().int().min(0).max(10_000)
export const maxStreamsPerAddress = z.coerce.number().int().min(1).max(100_000)
export const readLeaseMs = z.coerce.number().int().min(0).max(60_000)
export const headAgeMs = z.coerce.number().int().min(0).max(60_000)
export const submissionTimeoutMs = z.coerce.number().int().min(1_000).max(60_000)
export const inclusionTimeoutMs = z.coerce.number().int().min(100).max(60_000)
