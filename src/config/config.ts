import type { Address, Hex } from 'viem'
import type { z } from 'zod'
import {
  burstSeconds,
  type ChainVariables,
  type Contracts,
  chainVariables,
  deployments,
  eventStreamObjects,
  type GasBudget,
  gasBudget,
  headAgeMs,
  httpUrl,
  inclusionTimeoutMs,
  maxParallelRequests,
  maxStreamsPerAddress,
  paymentVariables,
  priceProviderIds,
  priceProviderVariables,
  priceRefreshIntervalSeconds,
  privateKeys,
  REAL_MONEY_CHAINS,
  readLeaseMs,
  requestsPerMinute,
  submissionTimeoutMs,
  type TradingContracts,
  tradingContracts,
  tradingVariables,
  webhookVariables,
} from './variable-schemas.ts'

export const SERVICE_NAME = 'agent-trading-service'
export const VERSION = '0.1.0'

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']
const DEFAULT_READ_LEASE_MS = 100
const DEFAULT_HEAD_AGE_MS = 2_000
const DEFAULT_PRICE_REFRESH_INTERVAL_SECONDS = 30
const DEFAULT_EVENT_STREAM_OBJECTS = 16
const DEFAULT_MAX_STREAMS_PER_ADDRESS = 250
const DEFAULT_INCLUSION_TIMEOUT_MS = 15_000
const DEFAULT_SUBMISSION_TIMEOUT_MS = 4_500

/** Requests per minute. */
export const DEFAULT_RATE_LIMITS = {
  reads: 6_000,
  quotes: 1_200,
  submissions: 1_200,
  registrations: 120,
  streams: 1_200,
  mcpSessions: 300,
  signer: 600,
  mcpSession: 1_200,
} satisfies RateLimitQuotas

const DEFAULT_BURST_SECONDS = 20
const DEFAULT_MAX_PARALLEL_REQUESTS = 8

const DEFAULT_GAS_BUDGETS = {
  agent: { perMinute: 6e6, perDay: 3e8 },
  owner: { perMinute: 3e7, perDay: 1.5e9 },
  payer: { perMinute: 2e6, perDay: 2e7 },
  lane: { perMinute: 6e8, perDay: 1.5e10 },
  newAgents: { perMinute: 1.5e8, perDay: 3e9 },
  newContractPayers: { perMinute: 5e5, perDay: 5e6 },
  exitReserve: { perMinute: 3e6, perDay: 3e7 },
} satisfies GasBudgets

/** A chain, its nodes in order of preference, and the contracts that every deployment has. */
export type ChainConfig = {
  id: number
  rpcUrls: string[]
  contracts: Contracts
  /** Token addresses by symbol. */
  tokens: Record<string, Address>
  /** Vault addresses by slug. */
  vaults: Record<string, Address>
  /** The block of the deployment, or an earlier one: no contract has an older event. */
  startBlock: bigint
  /** Whether another chain may replace this one under the same id, as when an embedded chain restarts. */
  mayRestart: boolean
}

/**
 * The gas budgets of a lane. Agents and signers less than a day old share `newAgents`; contracts that have never paid
 * share `newContractPayers` for reverted settlements. An agent's reductions and an owner's messages use `exitReserve`
 * once another budget is exhausted.
 */
export type GasBudgetName = 'agent' | 'owner' | 'payer' | 'lane' | 'newAgents' | 'newContractPayers' | 'exitReserve'
export type GasBudgets = Record<GasBudgetName, GasBudget>

/**
 * Limits per minute: the first six for each client address, `signer` for each account that signs messages, `mcpSession`
 * for the messages of each MCP session.
 */
export type RateLimitName =
  | 'reads'
  | 'quotes'
  | 'submissions'
  | 'registrations'
  | 'streams'
  | 'mcpSessions'
  | 'signer'
  | 'mcpSession'
/** Requests per minute; 0 means no limit. */
export type RateLimitQuotas = Record<RateLimitName, number>
export type RateLimitConfig = {
  quotas: RateLimitQuotas
  /** How many seconds' worth of a quota a client may use at once; 0 allows a whole minute's worth. */
  burstSeconds: number
  /** How many requests of clients without a verified signature an isolate works on at a time; 0 means no limit. */
  maxParallel: number
}

/** A market-data provider that is queried over HTTP. */
export type HttpPriceProviderConfig = {
  kind: 'http' | 'coingecko' | 'finnhub'
  url: string
  key: string | undefined
  /** The provider's ids of symbols, where they differ from the symbol. */
  ids: Record<string, string>
}

/** Where prices come from; `local` repeats the oracle's own prices, for development chains. */
export type PriceProviderConfig = { kind: 'local' } | HttpPriceProviderConfig

/** How the registration fee is paid (x402 scheme `exact`). The FeeManager supplies undefined fields. */
export type PaymentConfig = {
  /** CAIP-2. It may be another chain than the deployment's. */
  network: `eip155:${number}`
  isOnDeploymentChain: boolean
  asset: Address | undefined
  /** Name and version of the asset's EIP-712 domain. */
  assetName: string
  assetVersion: string
  payTo: Address | undefined
  /** Base URL of a hosted facilitator; undefined if the Worker verifies and settles itself. */
  facilitatorUrl: string | undefined
  facilitatorTimeoutMs: number
  /** Nodes of the payment's chain, to look up settlements whose response was lost. */
  rpcUrls: string[]
  /** How long a payment may be valid. */
  validitySeconds: number
}

/** The allowed targets and number of webhooks. */
export type WebhookConfig = {
  /** URL of a DNS-over-HTTPS resolver with the JSON API. */
  resolverUrl: string
  /** Whether targets may be private and without TLS, which only embedded chains allow. */
  allowsLocalTargets: boolean
  maxWebhooks: number
  maxWebhooksPerAgent: number
}

/** The capabilities of the deployment. One that is not configured is undefined, or an empty list. */
export type Config = {
  service: string
  version: string
  baseUrl: string | undefined
  /** Hosts (and hosts of browser origins) that /mcp accepts, so that foreign pages cannot reach a local server. */
  allowedHosts: string[]
  docsEnabled: boolean
  /** Base URL of the chain's block explorer, which has /tx/<hash> and /address/<address>. */
  explorerUrl: string | undefined
  chain: ChainConfig | undefined
  trading: TradingContracts | undefined
  /** Keys of the accounts that relay intents. */
  executorKeys: Hex[]
  /** Key of the account that relays registrations and settles payments. */
  relayerKey: Hex | undefined
  /** Key of the account that posts prices. */
  oracleUpdaterKey: Hex | undefined
  /** The account that fires exits. */
  keeper: { key: Hex } | undefined
  /** Key of the account that posts weekly results to the ERC-8004 reputation registry. */
  reporterKey: Hex | undefined
  /** Whether equity market hours apply to exits, price refreshes and stale-price messages. */
  respectSessions: boolean
  priceProvider: PriceProviderConfig | undefined
  /** `unusable` if payment is enabled but misconfigured: then registrations are rejected instead of being free. */
  payment: PaymentConfig | 'unusable' | undefined
  /** Who may refresh prices: holders of the secret, anyone once per interval, or nobody. */
  priceRefresh: { secret: string } | { intervalMs: number } | undefined
  /** The operator's bearer token; without one, readiness never shows balances. */
  operatorSecret: string | undefined
  /** Base URLs of the service's deployments by chain id, including this one. */
  deployments: Record<string, string>
  /** How long a response about the newest block may be repeated without querying the node; 0 disables the cache. */
  readLeaseMs: number
  /** How long a block must be known before the index reads up to it: by then every node behind a load balancer has it. */
  headAgeMs: number
  /** How long a lane waits for the inclusion of a transaction before reconciliation takes over. */
  inclusionTimeoutMs: number
  /** How long a submission may take before the response is SUBMISSION_UNKNOWN; the lane continues. */
  submissionTimeoutMs: number
  gasBudgets: GasBudgets
  rateLimits: RateLimitConfig
  /** How many Durable Objects hold the event streams. */
  eventStreamObjects: number
  /** How many event streams a client may have open. */
  maxStreamsPerAddress: number
  /** Undefined if the deployment delivers no webhooks. */
  webhooks: WebhookConfig | undefined
  /** Variables that are set but unusable: the name and what is wrong, never the value, which may be a secret. */
  problems: string[]
}

type Variables = Partial<Record<string, unknown>>

/** Parses the Worker's variables. Never throws: unusable variables are listed in `problems`. */
export function parseConfig(variables: Variables): Config {
  const problems: string[] = []
  const set = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => isNonEmptyString(entry[1])),
  )

  function parse<Schema extends z.ZodType>(schema: Schema, input: unknown, path: string[]) {
    const { success, data, error } = schema.safeParse(input)
    if (success) return data
    problems.push(...error.issues.map(issue => `${[...path, ...issue.path].join('.')}: ${issue.message}`))
    return undefined
  }
  /** Parses one variable; undefined if it is not set. */
  const parseOne = <Schema extends z.ZodType>(name: string, schema: Schema) =>
    name in set ? parse(schema, set[name], [name]) : undefined
  /** Parses several variables at once; undefined unless the named ones are set. */
  const parseGroup = <Schema extends z.ZodType>(required: string[], schema: Schema) =>
    required.every(name => name in set) ? parse(schema, set, []) : undefined

  const chain = parseGroup(['CHAIN_ID', 'RPC_URL', 'CONTRACTS'], chainVariables)
  const trading = chain && parse(tradingVariables, set, [])
  const payment = parsePayment()
  const priceProvider = parsePriceProvider()
  const baseUrl = set.BASE_URL?.replace(/\/$/, '')
  const isKeeperEnabled = set.KEEPER_ENABLED !== 'false'
  const [keeperKey] = (isKeeperEnabled && parseOne('KEEPER_PRIVATE_KEY', privateKeys)) || []

  const gasBudgets = {
    agent: parseOne('GAS_BUDGET_AGENT', gasBudget) ?? DEFAULT_GAS_BUDGETS.agent,
    owner: parseOne('GAS_BUDGET_OWNER', gasBudget) ?? DEFAULT_GAS_BUDGETS.owner,
    payer: parseOne('GAS_BUDGET_PAYER', gasBudget) ?? DEFAULT_GAS_BUDGETS.payer,
    lane: parseOne('GAS_BUDGET_LANE', gasBudget) ?? DEFAULT_GAS_BUDGETS.lane,
    newAgents: parseOne('GAS_BUDGET_NEW_AGENTS', gasBudget) ?? DEFAULT_GAS_BUDGETS.newAgents,
    newContractPayers: parseOne('GAS_BUDGET_NEW_CONTRACT_PAYERS', gasBudget) ?? DEFAULT_GAS_BUDGETS.newContractPayers,
    exitReserve: parseOne('GAS_BUDGET_EXIT_RESERVE', gasBudget) ?? DEFAULT_GAS_BUDGETS.exitReserve,
  }

  const quotas = {
    reads: parseOne('RATE_LIMIT_READS', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.reads,
    quotes: parseOne('RATE_LIMIT_QUOTES', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.quotes,
    submissions: parseOne('RATE_LIMIT_SUBMISSIONS', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.submissions,
    registrations: parseOne('RATE_LIMIT_REGISTRATIONS', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.registrations,
    streams: parseOne('RATE_LIMIT_STREAMS', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.streams,
    mcpSessions: parseOne('RATE_LIMIT_MCP_SESSIONS', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.mcpSessions,
    signer: parseOne('RATE_LIMIT_SIGNER', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.signer,
    mcpSession: parseOne('RATE_LIMIT_MCP_SESSION', requestsPerMinute) ?? DEFAULT_RATE_LIMITS.mcpSession,
  }

  function parsePayment(): PaymentConfig | 'unusable' | undefined {
    if (set.X402_ENABLED === undefined || set.X402_ENABLED === 'false') return undefined
    const values = chain && parse(paymentVariables(chain), set, [])
    return chain && values ? toPaymentConfig(values, chain) : 'unusable'
  }

  function parsePriceProvider(): PriceProviderConfig | undefined {
    const values = parseGroup(['PRICE_PROVIDER'], priceProviderVariables(chain?.CHAIN_ID))
    if (values === undefined) return undefined
    if (values.PRICE_PROVIDER === 'local') return { kind: 'local' }
    return {
      kind: values.PRICE_PROVIDER,
      url: values.PRICE_PROVIDER_URL,
      key: set.PRICE_PROVIDER_KEY,
      ids: parseOne('PRICE_PROVIDER_IDS', priceProviderIds) ?? {},
    }
  }

  function parseWebhooks(): WebhookConfig | undefined {
    if (set.WEBHOOKS_ENABLED === 'false') return undefined
    const values = chain && parse(webhookVariables(chain.CHAIN_MAY_RESTART === 'true'), set, [])
    return (
      values && {
        resolverUrl: values.WEBHOOK_RESOLVER_URL,
        allowsLocalTargets: values.WEBHOOK_LOCAL_TARGETS === 'true',
        maxWebhooks: values.MAX_WEBHOOKS,
        maxWebhooksPerAgent: values.MAX_WEBHOOKS_PER_AGENT,
      }
    )
  }

  function parsePriceRefresh(): Config['priceRefresh'] {
    const secret = set.PRICE_REFRESH_SECRET
    if (secret !== undefined) return { secret }
    const seconds = parseOne('PRICE_REFRESH_INTERVAL_SECONDS', priceRefreshIntervalSeconds)
    const isRealMoney = chain !== undefined && REAL_MONEY_CHAINS.includes(chain.CHAIN_ID)
    return isRealMoney ? undefined : { intervalMs: (seconds ?? DEFAULT_PRICE_REFRESH_INTERVAL_SECONDS) * 1_000 }
  }

  return {
    service: SERVICE_NAME,
    version: VERSION,
    baseUrl,
    allowedHosts: [...LOCAL_HOSTS, ...hostsOf(set.BASE_URL, set.ALLOWED_HOSTS)],
    docsEnabled: set.DOCS_ENABLED !== 'false',
    explorerUrl: parseOne('EXPLORER_URL', httpUrl),
    chain: chain && toChainConfig(chain),
    trading: tradingContracts.safeParse(trading?.CONTRACTS).data,
    executorKeys: parseOne('EXECUTOR_PRIVATE_KEY', privateKeys) ?? [],
    relayerKey: parseOne('RELAYER_PRIVATE_KEY', privateKeys)?.[0],
    oracleUpdaterKey: parseOne('ORACLE_UPDATER_PRIVATE_KEY', privateKeys)?.[0],
    keeper: keeperKey && { key: keeperKey },
    reporterKey: parseOne('REPORTER_PRIVATE_KEY', privateKeys)?.[0],
    respectSessions: set.MARKET_SESSIONS !== 'off',
    priceProvider,
    payment,
    priceRefresh: parsePriceRefresh(),
    operatorSecret: set.OPERATOR_SECRET,
    deployments: {
      ...parseOne('DEPLOYMENTS', deployments),
      ...(chain && baseUrl && { [chain.CHAIN_ID]: baseUrl }),
    },
    headAgeMs: parseOne('HEAD_AGE_MS', headAgeMs) ?? DEFAULT_HEAD_AGE_MS,
    readLeaseMs: parseOne('READ_LEASE_MS', readLeaseMs) ?? DEFAULT_READ_LEASE_MS,
    inclusionTimeoutMs: parseOne('INCLUSION_TIMEOUT_MS', inclusionTimeoutMs) ?? DEFAULT_INCLUSION_TIMEOUT_MS,
    submissionTimeoutMs: parseOne('SUBMISSION_TIMEOUT_MS', submissionTimeoutMs) ?? DEFAULT_SUBMISSION_TIMEOUT_MS,
    gasBudgets,
    rateLimits: {
      quotas,
      burstSeconds: parseOne('RATE_LIMIT_BURST_SECONDS', burstSeconds) ?? DEFAULT_BURST_SECONDS,
      maxParallel: parseOne('MAX_PARALLEL_REQUESTS', maxParallelRequests) ?? DEFAULT_MAX_PARALLEL_REQUESTS,
    },
    eventStreamObjects: parseOne('EVENT_STREAM_OBJECTS', eventStreamObjects) ?? DEFAULT_EVENT_STREAM_OBJECTS,
    maxStreamsPerAddress: parseOne('MAX_STREAMS_PER_ADDRESS', maxStreamsPerAddress) ?? DEFAULT_MAX_STREAMS_PER_ADDRESS,
    webhooks: parseWebhooks(),
    problems,
  }
}

const toChainConfig = (variables: ChainVariables): ChainConfig => ({
  id: variables.CHAIN_ID,
  rpcUrls: variables.RPC_URL,
  contracts: variables.CONTRACTS,
  tokens: variables.TOKENS,
  vaults: variables.VAULTS,
  startBlock: variables.START_BLOCK,
  mayRestart: variables.CHAIN_MAY_RESTART === 'true',
})

/** Fees are paid on the deployment's own chain unless another network is set. */
const toPaymentConfig = (
  variables: z.output<ReturnType<typeof paymentVariables>>,
  { CHAIN_ID, RPC_URL }: ChainVariables,
): PaymentConfig => ({
  network: variables.X402_NETWORK ?? `eip155:${CHAIN_ID}`,
  isOnDeploymentChain: [undefined, `eip155:${CHAIN_ID}`].includes(variables.X402_NETWORK),
  asset: variables.X402_ASSET,
  assetName: variables.X402_ASSET_NAME,
  assetVersion: variables.X402_ASSET_VERSION,
  payTo: variables.X402_PAY_TO,
  facilitatorUrl: variables.X402_FACILITATOR_URL,
  facilitatorTimeoutMs: variables.X402_FACILITATOR_TIMEOUT_MS,
  rpcUrls: variables.X402_RPC_URL ?? RPC_URL,
  validitySeconds: variables.X402_VALIDITY_SECONDS,
})

/** Returns the host of a URL and the hosts of a comma-separated list, in lower case. */
function hostsOf(url = '', list = ''): string[] {
  const hosts = [
    URL.canParse(url) ? new URL(url).hostname : '',
    ...list.split(',').map(host => host.trim().toLowerCase()),
  ]
  return hosts.filter(host => host !== '')
}

const isNonEmptyString = (value: unknown): value is string => typeof value === 'string' && value !== ''
