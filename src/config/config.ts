import { EMBEDDED_DOLLAR, isEmbeddedChain } from '@agent-trading-service/protocol/deployment-facts'
import { isWithoutMoney, publicChain } from '@agent-trading-service/protocol/known-chain'
import { type Address, type Hex, sha256, stringToBytes } from 'viem'
import {
  type Contracts,
  chainContracts,
  type GasBudget,
  type SharedGasBudget,
  type TradingContracts,
  tradingContracts,
  type ValueOf,
  type Variable,
  type VariableName,
  variables,
} from './variables.ts'

export const SERVICE_NAME = 'agent-trading-service'
export const VERSION = '0.1.0'

/** A provider's price would be multiplied twice. */
const REMOVED_MULTIPLIERS = 'PRICE_PROVIDER_MULTIPLIERS'

const LOCAL_HOSTS: [string, ...string[]] = ['localhost', '127.0.0.1', '[::1]']
/** 0.01 gwei and ten times as much, on a chain of which nothing is known. */
const DEFAULT_GAS_PRICES = { expectedWei: 10_000_000n, maxWei: 100_000_000n }
const USDC_DOMAIN = { name: 'USD Coin', version: '2' }
const PRICE_PROVIDER_URLS = { coingecko: 'https://api.coingecko.com/api/v3', finnhub: 'https://finnhub.io/api/v1' }
const DATA_STREAMS_URLS = {
  real: 'https://api.dataengine.chain.link',
  test: 'https://api.testnet-dataengine.chain.link',
}
/**
 * Variables required for payment on another chain, because the Worker knows only its own chain's contracts and settles
 * only there.
 */
const REQUIRED_ELSEWHERE = ['X402_ASSET', 'X402_PAY_TO', 'X402_FACILITATOR_URL', 'X402_RPC_URL'] as const

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
  /** Whether the chain's funds are worthless, so that it permits what a real chain must not. */
  isDevelopment: boolean
  /** Whether it is an embedded chain, which may have the id of a public one. */
  isEmbedded: boolean
  /** Whether the chain makes blocks only for transactions. */
  makesBlocksOnDemand: boolean
}

/**
 * The gas budgets of a lane. Agents less than a day old share `newAgents`, registrations `registrations`, contracts
 * `contractReverts` for their reverted transactions. An agent's reductions and its owner's stops use an `exitReserve`
 * once another budget is exhausted; all exit reserves share `reserves`.
 */
export type GasBudgets = Record<'agent' | 'payer' | 'contractReverts' | 'exitReserve', GasBudget> &
  Record<SharedGasBudgetName, SharedGasBudget>
export type SharedGasBudgetName = 'lane' | 'newAgents' | 'registrations' | 'reserves'
export type GasBudgetName = keyof GasBudgets

/**
 * Prices of gas: the one up to which gas budgets have the gas that they name, and the highest that is paid for what can
 * wait.
 */
export type GasPrices = { expectedWei: bigint; maxWei: bigint }

/** What requests may cost in units a minute (limits/prices.ts); 0 is no limit. */
export type RequestBudgets = {
  /** Of one client address, and as much again for requests that reduce risk. */
  address: number
  /** Of the messages that one account has signed, wherever they come from. */
  account: number
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

/** The provider of signed price reports. */
export type DataStreamsConfig = { url: string; key: string; secret: string }

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
}

/** The capabilities of the deployment. One that is not configured is undefined, or an empty list. */
export type Config = {
  service: string
  version: string
  baseUrl: string | undefined
  /** Hosts (and hosts of browser origins) that /mcp accepts, so that foreign pages cannot reach a local server. */
  allowedHosts: string[]
  /** The hosts that messages to the service itself may name, the deployment's own first. */
  serviceHosts: readonly [string, ...string[]]
  docsEnabled: boolean
  /** Undefined if the chain is not known. */
  chainName: string | undefined
  /** Base URL of the chain's block explorer, which has /tx/<hash> and /address/<address>. */
  explorerUrl: string | undefined
  /** A node of the chain that anybody may use. */
  publicRpcUrl: string | undefined
  chain: ChainConfig | undefined
  trading: TradingContracts | undefined
  /** Keys of the accounts that relay intents. */
  executorKeys: Hex[]
  /** Key of the account that relays registrations and settles payments. */
  relayerKey: Hex | undefined
  /** Key of the account that posts prices. */
  oracleUpdaterKey: Hex | undefined
  /** The account that fires exits. */
  keeper: { key: Hex; intervalMs: number } | undefined
  /** Key of the account that posts weekly results to the ERC-8004 reputation registry. */
  reporterKey: Hex | undefined
  /** Whether equity market hours apply to exits, price refreshes and stale-price messages. */
  respectSessions: boolean
  priceProvider: PriceProviderConfig | undefined
  /** The provider of signed reports; undefined without credentials. */
  dataStreams: DataStreamsConfig | undefined
  /** `unusable` if payment is enabled but misconfigured: then registrations are rejected instead of being free. */
  payment: PaymentConfig | 'unusable' | undefined
  /** Who may refresh prices: holders of the secret, any caller once per interval, or no caller. */
  priceRefresh: { secret: string } | { intervalMs: number } | undefined
  /** The operator's bearer token; without one, readiness never shows balances. */
  operatorSecret: string | undefined
  /** The timelock operations that the operator has scheduled. */
  announcedOperations: readonly Hex[]
  /** Accounts of the operator whose ether for gas is watched, by name. */
  watchedAccounts: Readonly<Record<string, Address>>
  /** Base URLs of the service's deployments by chain id, including this one. */
  deployments: Record<string, string>
  /** How long a response about the newest block may be repeated without querying the node; 0 disables the cache. */
  readLeaseMs: number
  /** How long a lane waits for the inclusion of a transaction before reconciliation takes over. */
  inclusionTimeoutMs: number
  /** How long a submission may take before the response is SUBMISSION_UNKNOWN; the lane continues. */
  submissionTimeoutMs: number
  /** Priority fee per gas of the service's transactions. */
  priorityFeeWei: bigint
  gasBudgets: GasBudgets
  /** Undefined where gas costs nothing: on development chains, unless they are set. */
  gasPrices: GasPrices | undefined
  /** Authenticates the ids of MCP sessions. */
  mcpSessionKey: string
  requestBudgets: RequestBudgets
  /** How many Durable Objects hold the event streams. */
  eventStreamObjects: number
  /** Where a rehearsal moves the market; undefined on every other deployment. */
  rehearsalUrl: string | undefined
  /** Undefined if the deployment delivers no webhooks. */
  webhooks: WebhookConfig | undefined
  /** Variables that are set but unusable: the name and what is wrong, never the value, which may be a secret. */
  problems: string[]
}

/** Whether a URL only names a host: path, query and user may hold a key of the provider. */
function hasNoSecret(url: string): boolean {
  const { username, password, pathname, search } = new URL(url)
  return username === '' && password === '' && pathname === '/' && search === ''
}

/** Parses the Worker's variables. Never throws: unusable variables are listed in `problems`. */
export function parseConfig(environment: Partial<Record<string, unknown>>): Config {
  const problems: string[] = []
  const isSet = (name: VariableName) => typeof environment[name] === 'string' && environment[name] !== ''

  /** Returns a variable. One that is unusable counts as absent. */
  function read<Name extends VariableName>(name: Name): ValueOf<Name> {
    const { schema, default: fallback }: Variable = variables[name]
    if (!isSet(name)) return (fallback === undefined ? undefined : schema.parse(fallback)) as ValueOf<Name>
    const parsed = schema.safeParse(environment[name])
    if (parsed.success) return parsed.data as ValueOf<Name>
    problems.push(...parsed.error.issues.map(({ path, message }) => `${[name, ...path].join('.')}: ${message}`))
    return (fallback === undefined ? undefined : schema.parse(fallback)) as ValueOf<Name>
  }

  /** Reads variables that belong together; undefined if one of them is unusable. */
  function readTogether<Values>(readValues: () => Values): Values | undefined {
    const known = problems.length
    const values = readValues()
    return problems.length === known ? values : undefined
  }

  /** Reports why variables that are usable by themselves are not usable together. */
  const reject = (name: VariableName, problem: string): undefined => {
    problems.push(`${name}: ${problem}`)
  }

  /** Derives a key from all secrets, so that it needs none of its own and every isolate has the same. */
  const deriveKey = (purpose: string): Hex => {
    const secrets = Object.entries<Variable>(variables).flatMap(([name, { secret }]) =>
      secret ? environment[name] : [],
    )
    return sha256(stringToBytes(JSON.stringify([purpose, secrets])))
  }

  const contracts = read('CONTRACTS')
  const chainId = read('CHAIN_ID')
  const namesake = chainId === undefined ? undefined : publicChain(chainId)
  const chain = parseChain(chainId)
  const known = chain?.isEmbedded ? undefined : namesake
  const isRealMoney = chain !== undefined && !chain.isEmbedded && !isWithoutMoney(chain.id)
  const baseUrl = read('BASE_URL')
  const hosts = hostsOf(baseUrl, read('ALLOWED_HOSTS'))

  function parseChain(id: number | undefined): ChainConfig | undefined {
    const rpcUrls = read('RPC_URL')
    if (id === undefined || rpcUrls === undefined || contracts === undefined) return undefined
    const development = parseDevelopment(id, rpcUrls)
    return readTogether(() => ({
      id,
      rpcUrls,
      contracts: chainContracts.parse(contracts),
      tokens: read('TOKENS'),
      vaults: read('VAULTS'),
      startBlock: read('START_BLOCK'),
      ...development,
      makesBlocksOnDemand: read('BLOCKS_ON_DEMAND') ?? namesake?.makesBlocksOnDemand ?? false,
    }))
  }

  function parseDevelopment(id: number, rpcUrls: readonly string[]): Pick<ChainConfig, 'isDevelopment' | 'isEmbedded'> {
    const kind = read('DEVELOPMENT_CHAIN')
    const isLocal = rpcUrls.every(url => LOCAL_HOSTS.includes(new URL(url).hostname))
    if (kind === 'embedded' && isLocal && contracts?.USDC === EMBEDDED_DOLLAR)
      return { isDevelopment: true, isEmbedded: true }
    const isDevelopment = kind === 'true' && isWithoutMoney(id)
    if (kind === 'embedded')
      reject(
        'DEVELOPMENT_CHAIN',
        'must not be embedded: a node is on another machine, or the dollar is no embedded one',
      )
    else if (kind === 'true' && !isDevelopment)
      reject('DEVELOPMENT_CHAIN', `must not be true on chain ${id}, which is no known chain without real money`)
    return { isDevelopment, isEmbedded: isEmbeddedChain(id) }
  }

  function parsePayment(): PaymentConfig | 'unusable' | undefined {
    const isEnabled = readTogether(() => read('X402_ENABLED'))
    if (isEnabled === false) return undefined
    if (isEnabled === undefined || chain === undefined) return 'unusable'
    const ownNetwork = `eip155:${chain.id}` as const
    const payment = readTogether(() => ({
      ...paymentAssetOf(read('X402_NETWORK') ?? ownNetwork),
      asset: read('X402_ASSET'),
      payTo: read('X402_PAY_TO'),
      facilitatorUrl: read('X402_FACILITATOR_URL'),
      facilitatorTimeoutMs: read('X402_FACILITATOR_TIMEOUT_MS'),
      rpcUrls: read('X402_RPC_URL') ?? chain.rpcUrls,
      validitySeconds: read('X402_VALIDITY_SECONDS'),
    }))
    if (payment === undefined) return 'unusable'
    const isOnDeploymentChain = payment.network === ownNetwork
    const missing = isOnDeploymentChain ? [] : REQUIRED_ELSEWHERE.filter(name => !isSet(name))
    for (const name of missing) reject(name, 'must be set: the fee is paid on another chain')
    return missing.length > 0 ? 'unusable' : { ...payment, isOnDeploymentChain }
  }

  function paymentAssetOf(network: PaymentConfig['network']) {
    const { name, version } = publicChain(Number(network.split(':')[1]))?.dollar.domain ?? USDC_DOMAIN
    return {
      network,
      assetName: read('X402_ASSET_NAME') ?? name,
      assetVersion: read('X402_ASSET_VERSION') ?? version,
    }
  }

  function parsePriceProvider(): PriceProviderConfig | undefined {
    const provider = readTogether(() => ({ kind: read('PRICE_PROVIDER'), url: read('PRICE_PROVIDER_URL') }))
    if (provider?.kind === undefined) return undefined
    if (environment[REMOVED_MULTIPLIERS]) {
      problems.push(
        `${REMOVED_MULTIPLIERS}: was removed, so no price is posted until you unset it: the tokens say theirs`,
      )
      return undefined
    }
    const { kind } = provider
    if (kind === 'local')
      return isRealMoney ? reject('PRICE_PROVIDER', 'must not be local on a chain with real money') : { kind }
    const url = provider.url ?? (kind === 'http' ? undefined : PRICE_PROVIDER_URLS[kind])
    if (url === undefined) return reject('PRICE_PROVIDER_URL', 'must be set for the provider http')
    return {
      kind,
      url,
      key: read('PRICE_PROVIDER_KEY'),
      ids: read('PRICE_PROVIDER_IDS'),
    }
  }

  function parseDataStreams(): DataStreamsConfig | undefined {
    const [key, secret] = [read('DATA_STREAMS_KEY'), read('DATA_STREAMS_SECRET')]
    if (key === undefined && secret === undefined) return undefined
    if (key === undefined) return reject('DATA_STREAMS_KEY', 'must be set together with DATA_STREAMS_SECRET')
    if (secret === undefined) return reject('DATA_STREAMS_SECRET', 'must be set together with DATA_STREAMS_KEY')
    return { url: read('DATA_STREAMS_URL') ?? DATA_STREAMS_URLS[isRealMoney ? 'real' : 'test'], key, secret }
  }

  function parseWebhooks(): WebhookConfig | undefined {
    if (chain === undefined) return undefined
    const webhooks = readTogether(() => ({
      resolverUrl: read('WEBHOOK_RESOLVER_URL'),
      allowsLocalTargets: read('WEBHOOK_LOCAL_TARGETS'),
      maxWebhooks: read('MAX_WEBHOOKS'),
    }))
    return webhooks?.allowsLocalTargets && !chain.isDevelopment
      ? reject('WEBHOOK_LOCAL_TARGETS', 'must not be true unless DEVELOPMENT_CHAIN is')
      : webhooks
  }

  function parseRehearsal(): string | undefined {
    const url = read('REHEARSAL_URL')
    if (url === undefined || chain?.isDevelopment) return url
    return reject('REHEARSAL_URL', 'must not be set unless DEVELOPMENT_CHAIN is')
  }

  function parsePriceRefresh(): Config['priceRefresh'] {
    const secret = read('PRICE_REFRESH_SECRET')
    if (secret !== undefined) return { secret }
    const intervalMs = read('PRICE_REFRESH_INTERVAL_SECONDS') * 1_000
    return isRealMoney ? undefined : { intervalMs }
  }

  function parseKeeper(): Config['keeper'] {
    const [key] = (read('KEEPER_ENABLED') && read('KEEPER_PRIVATE_KEY')) || []
    return key && { key, intervalMs: read('KEEPER_INTERVAL_SECONDS') * 1_000 }
  }

  return {
    service: SERVICE_NAME,
    version: VERSION,
    baseUrl,
    allowedHosts: [...LOCAL_HOSTS, ...hosts],
    serviceHosts: serviceHostsOf(hosts),
    docsEnabled: read('DOCS_ENABLED'),
    chainName: chain?.isEmbedded && namesake ? `Embedded chain, not ${namesake.chain.name}` : known?.chain.name,
    explorerUrl: read('EXPLORER_URL') ?? known?.chain.blockExplorers?.default.url,
    publicRpcUrl:
      read('PUBLIC_RPC_URL') ??
      (chain?.isDevelopment ? chain.rpcUrls.find(hasNoSecret) : known?.chain.rpcUrls.default.http[0]),
    chain,
    trading: chain && tradingContracts.safeParse(contracts).data,
    executorKeys: read('EXECUTOR_PRIVATE_KEY') ?? [],
    relayerKey: read('RELAYER_PRIVATE_KEY')?.[0],
    oracleUpdaterKey: read('ORACLE_UPDATER_PRIVATE_KEY')?.[0],
    keeper: parseKeeper(),
    reporterKey: read('REPORTER_PRIVATE_KEY')?.[0],
    respectSessions: read('MARKET_SESSIONS'),
    priceProvider: parsePriceProvider(),
    dataStreams: parseDataStreams(),
    payment: parsePayment(),
    priceRefresh: parsePriceRefresh(),
    operatorSecret: read('OPERATOR_SECRET'),
    announcedOperations: read('ANNOUNCED_OPERATIONS'),
    watchedAccounts: read('WATCHED_ACCOUNTS'),
    deployments: { ...read('DEPLOYMENTS'), ...(chain && baseUrl && { [chain.id]: baseUrl }) },
    readLeaseMs: read('READ_LEASE_MS'),
    inclusionTimeoutMs: read('INCLUSION_TIMEOUT_MS'),
    submissionTimeoutMs: read('SUBMISSION_TIMEOUT_MS'),
    priorityFeeWei: read('PRIORITY_FEE_WEI'),
    gasPrices: read('GAS_PRICE_GWEI') ?? (chain?.isDevelopment ? undefined : (known?.gasPrices ?? DEFAULT_GAS_PRICES)),
    gasBudgets: gasBudgetsOf({
      agent: read('GAS_BUDGET_AGENT'),
      lane: read('GAS_BUDGET_LANE'),
    }),
    mcpSessionKey: deriveKey('MCP session ids'),
    requestBudgets: {
      address: read('REQUEST_BUDGET_ADDRESS'),
      account: read('REQUEST_BUDGET_ACCOUNT'),
      maxParallel: read('MAX_PARALLEL_REQUESTS'),
    },
    eventStreamObjects: read('EVENT_STREAM_OBJECTS'),
    rehearsalUrl: parseRehearsal(),
    webhooks: parseWebhooks(),
    problems,
  }
}

/** Returns all gas budgets of a lane. docs/limits.md explains the parts. */
function gasBudgetsOf({ agent, lane }: Pick<GasBudgets, 'agent' | 'lane'>): GasBudgets {
  const ofAgent = (minute: number, hour: number): GasBudget => ({
    perMinute: Math.round(agent.perMinute * minute),
    perHour: Math.round(agent.perHour * hour),
  })
  const ofLane = (minute: number, day: number): SharedGasBudget => ({
    perMinute: Math.round(lane.perMinute * minute),
    perDay: Math.round(lane.perDay * day),
  })
  return {
    agent,
    lane,
    exitReserve: ofAgent(1 / 2, 5 / 48),
    payer: ofAgent(1 / 3, 5 / 6),
    contractReverts: { perMinute: Math.round(lane.perMinute / 1_200), perHour: Math.round(lane.perDay / 20_000) },
    newAgents: ofLane(1 / 2, 2 / 5),
    registrations: ofLane(1 / 4, 1 / 10),
    reserves: ofLane(1 / 4, 1 / 5),
  }
}

/** A deployment that is reached on its own machine only has every name of it. */
function serviceHostsOf([first, ...others]: readonly string[]): Config['serviceHosts'] {
  if (first === undefined) return LOCAL_HOSTS
  const isLocal = [first, ...others].every(host => LOCAL_HOSTS.includes(host))
  return [...new Set([first, ...others, ...(isLocal ? LOCAL_HOSTS : [])])] as [string, ...string[]]
}

/** Returns the host of a URL and the hosts of a comma-separated list, in lower case. */
function hostsOf(url = '', list = ''): string[] {
  const hosts = [
    URL.canParse(url) ? new URL(url).hostname : '',
    ...list.split(',').map(host => host.trim().toLowerCase()),
  ]
  return hosts.filter(host => host !== '')
}
