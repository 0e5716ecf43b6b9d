import { getAddress, type Hex, isAddress } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { z } from 'zod'
import type { PaymentConfig } from './payments/requirements.ts'

const json = <T extends z.ZodType>(schema: T) =>
  z.string().transform((text, ctx): z.output<T> => {
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
const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .refine(isUsableKey, 'must be a secp256k1 private key')
  .transform(value => value.toLowerCase() as Hex)

function isUsableKey(key: string): boolean {
  try {
    privateKeyToAddress(key as Hex)
    return true
  } catch {
    return false
  }
}

const priceProvider = z.discriminatedUnion('PRICE_PROVIDER', [
  z.object({ PRICE_PROVIDER: z.literal('local') }),
  z.object({ PRICE_PROVIDER: z.literal('http'), PRICE_PROVIDER_URL: httpUrl() }),
  z.object({
    PRICE_PROVIDER: z.literal('coingecko'),
    PRICE_PROVIDER_URL: httpUrl().default('https://api.coingecko.com/api/v3'),
  }),
  z.object({
    PRICE_PROVIDER: z.literal('finnhub'),
    PRICE_PROVIDER_URL: httpUrl().default('https://finnhub.io/api/v1'),
  }),
])
// It passes what the oracle holds off as observed now: on a chain with real money that would be a lie.
const chainsOfRealMoney = [42161]
const priceProviderOf = (chainId: number | undefined) =>
  priceProvider.refine(
    ({ PRICE_PROVIDER }) => PRICE_PROVIDER !== 'local' || !chainsOfRealMoney.includes(chainId ?? 0),
    {
      path: ['PRICE_PROVIDER'],
      message: 'must not be local on a chain with real money',
    },
  )
const symbolIds = json(z.record(z.string(), z.string().min(1)))

function httpUrl() {
  return z.url({ protocol: /^https?$/ }).transform(url => url.replace(/\/$/, ''))
}

const CANONICAL_MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'

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
})
const tradingContracts = z.object({
  TradeRouter: address,
  TradeRouterLens: address,
  PositionManager: address,
  AllocationManager: address,
})

const chainEnv = z.object({
  CHAIN_ID: z.coerce.number().int().positive(),
  RPC_URL: rpcUrls(),
  CONTRACTS: json(chainContracts),
  TOKENS: json(z.record(z.string(), address)).default({}),
  VAULTS: json(z.record(z.string(), address)).default({}),
  START_BLOCK: z.coerce.bigint().min(0n).default(0n),
})

const caip2 = z
  .string()
  .regex(/^eip155:[1-9][0-9]*$/, 'must be a CAIP-2 network such as eip155:8453')
  .transform(network => network as `eip155:${number}`)
const paymentEnv = z.object({
  X402_ENABLED: z.literal('true', 'must be true or false'),
  X402_NETWORK: caip2.optional(),
  X402_ASSET: address.optional(),
  X402_ASSET_NAME: z.string().default('USD Coin'),
  X402_ASSET_VERSION: z.string().default('2'),
  X402_PAY_TO: address.optional(),
  X402_FACILITATOR_URL: httpUrl().optional(),
  X402_FACILITATOR_TIMEOUT_MS: z.coerce.number().int().min(100).max(60_000).default(15_000),
  X402_RPC_URL: rpcUrls().optional(),
  X402_VALIDITY_SECONDS: z.coerce.number().int().min(30).max(3_600).default(300),
})
// The Worker itself can only settle on its own chain, and the contracts' addresses say nothing about another one.
const REQUIRED_ELSEWHERE = ['X402_ASSET', 'X402_PAY_TO', 'X402_FACILITATOR_URL', 'X402_RPC_URL'] as const

function rpcUrls() {
  return z
    .string()
    .transform(urls => urls.split(',').map(url => url.trim()))
    .pipe(z.array(z.url({ protocol: /^https?$/ })).min(1))
}

export type Contracts = z.output<typeof chainContracts>
export type TradingContracts = z.output<typeof tradingContracts>

/** What the deployment is configured to do, grouped by capability; an absent group is undefined. */
export type Config = {
  service: string
  version: string
  baseUrl: string | undefined
  /** Host names under which /mcp may be asked, and from whose pages: a foreign page must not reach a local server. */
  allowedHosts: string[]
  docsEnabled: boolean
  chain:
    | {
        id: number
        rpcUrls: string[]
        contracts: Contracts
        tokens: Record<string, `0x${string}`>
        vaults: Record<string, `0x${string}`>
        /** The block that the contracts were deployed in, or an earlier one: no event of theirs is older. */
        startBlock: bigint
      }
    | undefined
  trading: TradingContracts | undefined
  executorKeys: Hex[]
  relayerKey: Hex | undefined
  oracleUpdaterKey: Hex | undefined
  /** Who fires exits; undefined where nobody does. */
  keeper: { key: Hex } | undefined
  /** Whether exits, refreshes and what is said of a stale price count with the hours of the market of equities. */
  respectSessions: boolean
  market:
    | { provider: 'local' }
    | {
        provider: 'http' | 'coingecko' | 'finnhub'
        url: string
        key: string | undefined
        /** What the provider calls a symbol, where it is not the symbol itself. */
        ids: Record<string, string>
      }
    | undefined
  /** How the registration fee is paid; `unusable` when it is to be paid and cannot be: then nobody is registered. */
  payment: PaymentConfig | 'unusable' | undefined
  /** Who may refresh prices; anybody when undefined. */
  priceRefreshSecret: string | undefined
  /** Base URLs of the service's deployments by chain id, its own among them. */
  deployments: Record<string, string>
  /** How long an answer about the newest block may be given again without asking the node; 0 asks each time. */
  readLeaseMs: number
  /** How long a submission waits for its inclusion before it answers SUBMISSION_UNKNOWN. */
  inclusionTimeoutMs: number
  /** What is set and cannot be used, by variable name; never the value, which may be a secret. */
  problems: string[]
}

export const SERVICE_NAME = 'agent-trading-service'
export const VERSION = '0.1.0'

/** Parses the Worker's variables once. A group that is absent or malformed is undefined; malformed ones are named. */
export function parseConfig(env: Partial<Record<string, unknown>>): Config {
  const problems: string[] = []
  const group = <T extends z.ZodType>(schema: T, given: boolean, value: unknown): z.output<T> | undefined => {
    if (!given) return undefined
    const result = schema.safeParse(value)
    if (result.success) return result.data
    problems.push(...result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`))
    return undefined
  }
  const isSet = (name: string) => typeof env[name] === 'string' && env[name] !== ''
  const text = (name: string) => (isSet(name) ? (env[name] as string) : undefined)
  const keys = (name: string) =>
    group(
      z.array(privateKey),
      isSet(name),
      text(name)
        ?.split(',')
        .map(key => key.trim()),
    ) ?? []

  const chain = group(chainEnv, isSet('CHAIN_ID') && isSet('RPC_URL') && isSet('CONTRACTS'), definedOnly(env))
  const trading = chain && group(z.object({ CONTRACTS: json(tradingContracts.partial()) }), true, definedOnly(env))
  const tradingWhole = tradingContracts.safeParse(trading?.CONTRACTS)
  const market = group(priceProviderOf(chain?.CHAIN_ID), isSet('PRICE_PROVIDER'), definedOnly(env))
  const baseUrl = text('BASE_URL')?.replace(/\/$/, '')
  const [keeperKey] = text('KEEPER_ENABLED') === 'false' ? [] : keys('KEEPER_PRIVATE_KEY')
  const isPaid = isSet('X402_ENABLED') && env.X402_ENABLED !== 'false'
  const payment = chain && group(paymentEnvOf(chain), isPaid, definedOnly(env))
  return {
    service: SERVICE_NAME,
    version: VERSION,
    baseUrl,
    allowedHosts: [...LOCAL_HOSTS, ...hostsOf(text('BASE_URL'), text('ALLOWED_HOSTS'))],
    docsEnabled: text('DOCS_ENABLED') !== 'false',
    chain: chain && {
      id: chain.CHAIN_ID,
      rpcUrls: chain.RPC_URL,
      contracts: chain.CONTRACTS,
      tokens: chain.TOKENS,
      vaults: chain.VAULTS,
      startBlock: chain.START_BLOCK,
    },
    trading: tradingWhole.success ? tradingWhole.data : undefined,
    executorKeys: keys('EXECUTOR_PRIVATE_KEY'),
    relayerKey: keys('RELAYER_PRIVATE_KEY')[0],
    oracleUpdaterKey: keys('ORACLE_UPDATER_PRIVATE_KEY')[0],
    keeper: keeperKey && { key: keeperKey },
    respectSessions: text('MARKET_SESSIONS') !== 'off',
    market:
      market?.PRICE_PROVIDER === 'local'
        ? { provider: 'local' }
        : market && {
            provider: market.PRICE_PROVIDER,
            url: market.PRICE_PROVIDER_URL,
            key: text('PRICE_PROVIDER_KEY'),
            ids: group(symbolIds, isSet('PRICE_PROVIDER_IDS'), text('PRICE_PROVIDER_IDS')) ?? {},
          },
    payment: isPaid ? (payment ?? 'unusable') : undefined,
    priceRefreshSecret: text('PRICE_REFRESH_SECRET'),
    deployments: {
      ...group(json(z.record(z.string(), httpUrl())), isSet('DEPLOYMENTS'), text('DEPLOYMENTS')),
      ...(chain && baseUrl && { [chain.CHAIN_ID]: baseUrl }),
    },
    readLeaseMs: group(z.coerce.number().int().min(0).max(60_000), isSet('READ_LEASE_MS'), env.READ_LEASE_MS) ?? 100,
    inclusionTimeoutMs:
      group(z.coerce.number().int().min(100).max(60_000), isSet('INCLUSION_TIMEOUT_MS'), env.INCLUSION_TIMEOUT_MS) ??
      15_000,
    problems,
  }
}

/** Payment on the deployment's own chain unless another network is named, with all that is needed there. */
const paymentEnvOf = ({ CHAIN_ID, RPC_URL }: z.output<typeof chainEnv>) =>
  paymentEnv
    .superRefine((vars, ctx) => {
      if (vars.X402_NETWORK === undefined || vars.X402_NETWORK === `eip155:${CHAIN_ID}`) return
      for (const name of REQUIRED_ELSEWHERE)
        if (vars[name] === undefined)
          ctx.addIssue({ code: 'custom', path: [name], message: 'must be set: the fee is paid on another chain' })
    })
    .transform(
      (vars): PaymentConfig => ({
        network: vars.X402_NETWORK ?? `eip155:${CHAIN_ID}`,
        asset: vars.X402_ASSET,
        assetName: vars.X402_ASSET_NAME,
        assetVersion: vars.X402_ASSET_VERSION,
        payTo: vars.X402_PAY_TO,
        facilitatorUrl: vars.X402_FACILITATOR_URL,
        facilitatorTimeoutMs: vars.X402_FACILITATOR_TIMEOUT_MS,
        rpcUrls: vars.X402_RPC_URL ?? RPC_URL,
        validitySeconds: vars.X402_VALIDITY_SECONDS,
      }),
    )

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/** The host of a URL and the hosts of a comma-separated list, in lower case. */
function hostsOf(url = '', list = ''): string[] {
  const hosts = [URL.parse(url)?.hostname ?? '', ...list.split(',').map(host => host.trim().toLowerCase())]
  return hosts.filter(host => host !== '')
}

const definedOnly = (env: Partial<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === 'string' && value !== ''))
