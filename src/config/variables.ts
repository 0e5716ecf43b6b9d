import { getAddress, type Hex, isAddress, parseGwei } from 'viem'
import { z } from 'zod'
import { ORDER } from '../crypto/secp256k1-javascript.ts'

// The Worker's variables, which are all strings. Messages say what a value must be, but never contain the value, which
// may be a secret.

const CANONICAL_MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'

/** Parses a variable that holds JSON. */
const json = <Schema extends z.ZodType>(schema: Schema) =>
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
const httpUrl = z.url({ protocol: /^https?$/ }).transform(url => url.replace(/\/$/, ''))

const rpcUrls = commaSeparated().pipe(z.array(z.url({ protocol: /^https?$/ })).min(1))

/** One or more private keys, in lower case. */
const privateKeys = commaSeparated().pipe(
  z.array(
    z
      .string()
      .refine(isPrivateKey, 'must be a secp256k1 private key')
      .transform(value => value.toLowerCase() as Hex),
  ),
)

function commaSeparated() {
  return z.string().transform(text => text.split(',').map(part => part.trim()))
}

function isPrivateKey(text: string): boolean {
  return /^0x[0-9a-fA-F]{64}$/.test(text) && BigInt(text) > 0n && BigInt(text) < ORDER
}

/** The contracts that every deployment has, and the optional ones. */
export const chainContracts = z.object({
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
  ServiceReader: address.optional(),
  /** Its events are followed: an operation that nobody announced is reported. */
  Timelock: address.optional(),
})

/** The contracts without which a deployment only reads. */
export const tradingContracts = z.object({
  TradeRouter: address,
  TradeRouterLens: address,
  PositionManager: address,
  AllocationManager: address,
})

export type Contracts = z.output<typeof chainContracts>
export type TradingContracts = z.output<typeof tradingContracts>

const contracts = z.object({ ...chainContracts.shape, ...tradingContracts.partial().shape })

const trueOrFalse = z.enum(['true', 'false'], 'must be true or false').transform(text => text === 'true')
const unlessFalse = z.string().transform(text => text !== 'false')
const integer = (min: number, max: number) => z.coerce.number().int().min(min).max(max)

const network = z
  .string()
  .regex(/^eip155:[1-9][0-9]*$/, 'must be a CAIP-2 network such as eip155:8453')
  .transform(network => network as `eip155:${number}`)

const twoAmountsOfGas = (longTime: string) =>
  z
    .string()
    .regex(/^\d{1,15},\d{1,15}$/, `must be gas per minute and gas per ${longTime}, such as 6000000,80000000`)
    .transform(text => text.split(',').map(Number) as [number, number])

/** Gas that one account may use within a minute and within an hour. */
const gasBudget = twoAmountsOfGas('hour').transform(([perMinute, perHour]) => ({ perMinute, perHour }))
/** Gas that accounts share, within a minute and within a day. */
const sharedGasBudget = twoAmountsOfGas('day').transform(([perMinute, perDay]) => ({ perMinute, perDay }))
export type GasBudget = z.output<typeof gasBudget>
export type SharedGasBudget = z.output<typeof sharedGasBudget>

/** Two gas prices in gwei. */
const gasPrices = z
  .string()
  .regex(
    /^\d{1,9}(\.\d{1,9})?,\d{1,9}(\.\d{1,9})?$/,
    'must be the expected and the highest gas price in gwei, such as 0.01,0.1',
  )
  .transform(text => text.split(',').map(gwei => parseGwei(gwei)) as [bigint, bigint])
  .refine(
    ([expected, max]) => expected > 0n && expected <= max,
    'must be an expected gas price above 0 and a highest that is not below it',
  )
  .transform(([expectedWei, maxWei]) => ({ expectedWei, maxWei }))

/** Ids of timelock operations, comma-separated. */
const operationIds = z
  .string()
  .regex(/^(0x[0-9a-fA-F]{64}(,\s*0x[0-9a-fA-F]{64})*)?$/, 'must be ids of 0x and 64 hex digits, comma-separated')
  .transform(text => (text.match(/0x[0-9a-fA-F]{64}/g) ?? []).map(id => id.toLowerCase() as Hex))

/** What requests may cost; 0 means no limit. */
const unitsPerMinute = integer(0, 1_000_000)

/** What the variables of a group configure. */
export const groups = {
  chain: 'The chain and the contracts. Everything but the documentation and /health needs them.',
  trading: 'Relaying signed intents. Without a key the service is read-only.',
  registration: 'Relaying registrations and settling registration fees.',
  fee: 'The registration fee over x402.',
  exits: 'The keeper, which fires exit rules.',
  prices: 'Market data, and posting it to the oracle.',
  reputation: 'Posting track records to ERC-8004; needs BASE_URL too.',
  budgets: 'What strangers may cost the operator; docs/limits.md.',
  webhooks: "Signed notifications of an agent's events; docs/guides/webhooks.md.",
  service: 'The service itself.',
} as const
export type Group = keyof typeof groups

export type Variable = {
  group: Group
  schema: z.ZodType
  /** The value that applies when the variable is absent, as text. */
  default?: string
  /** One sentence without a period, in Markdown. */
  meaning: string
  secret?: true
  /** The behaviour when the variable is absent, if that is not a value. */
  otherwise?: string
}

/** Declares the variables of a group. */
const variablesOf = <const V extends Record<string, Omit<Variable, 'group'>>>(group: Group, variables: V) =>
  Object.fromEntries(Object.entries(variables).map(([name, variable]) => [name, { ...variable, group }])) as {
    [Name in keyof V]: V[Name] & { group: Group }
  }

/** Every variable that the Worker reads. docs/configuration.md and .dev.vars.example are generated from this table. */
export const variables = {
  ...variablesOf('chain', {
    CHAIN_ID: {
      schema: z.coerce.number().int().positive(),
      meaning: 'chain id: one of docs/chains.md, or the id of an embedded chain',
    },
    RPC_URL: {
      schema: rpcUrls,
      secret: true,
      meaning: 'RPC URLs, comma-separated; every URL after the first is a fallback',
    },
    CONTRACTS: {
      schema: json(contracts),
      meaning: 'JSON `{name: address}` from the deployment file',
    },
    TOKENS: {
      schema: json(z.record(z.string(), address)),
      default: '{}',
      meaning: 'JSON `{symbol: address}`; saves a round trip, and the on-chain registry takes precedence',
    },
    VAULTS: {
      schema: json(z.record(z.string(), address)),
      default: '{}',
      meaning: 'JSON `{slug: address}`; saves a round trip, and the on-chain registry takes precedence',
    },
    START_BLOCK: {
      schema: z.coerce.bigint().min(0n),
      default: '0',
      meaning: 'block of the deployment, or an earlier one; the indexer starts there',
    },
    BLOCKS_ON_DEMAND: {
      schema: trueOrFalse,
      otherwise: 'as docs/chains.md says',
      meaning:
        'whether the chain makes blocks only for transactions, so an old newest block is no halt unless a transaction waits',
    },
    DEVELOPMENT_CHAIN: {
      schema: z.enum(['true', 'false', 'embedded'], 'must be true, false or embedded'),
      default: 'false',
      meaning:
        '`true` for a chain whose funds are worthless: permits what a real chain must not, such as local webhook targets; refused unless it is a test network of docs/chains.md or has the id of the embedded chain, 31337. `embedded` for an embedded chain of any id, such as `npm run dev -- --chain robinhood` starts: refused unless its nodes are on this machine and its dollar is the embedded one',
    },
    REHEARSAL_URL: {
      schema: httpUrl,
      meaning:
        'where a rehearsal (`ats rehearse`) moves the market of a development chain (`DEVELOPMENT_CHAIN`); only then is there a `POST /rehearsal/advance`, and the keeper works when the market has moved',
    },
  }),
  ...variablesOf('trading', {
    EXECUTOR_PRIVATE_KEY: {
      schema: privateKeys,
      secret: true,
      meaning: 'keys with `EXECUTOR_ROLE`, comma-separated; each one is a lane that relays intents',
    },
  }),
  ...variablesOf('registration', {
    RELAYER_PRIVATE_KEY: {
      schema: privateKeys,
      secret: true,
      meaning: "key of FeeManager's relayer; relays registrations and ERC-8004 links, and settles fees",
    },
  }),
  ...variablesOf('fee', {
    X402_ENABLED: {
      schema: trueOrFalse,
      default: 'false',
      meaning: '`true` charges the registration fee over HTTP 402',
    },
    X402_NETWORK: {
      schema: network,
      meaning: 'CAIP-2 network of the payment, such as `eip155:8453`',
      otherwise: "the deployment's chain",
    },
    X402_ASSET: {
      schema: address,
      meaning: 'address of the EIP-3009 token of the payment',
      otherwise: "FeeManager's asset",
    },
    X402_ASSET_NAME: {
      schema: z.string(),
      meaning: "name in the token's EIP-712 domain",
      otherwise: "that of the chain's dollar (docs/chains.md), or `USD Coin`",
    },
    X402_ASSET_VERSION: {
      schema: z.string(),
      meaning: "version in the token's EIP-712 domain",
      otherwise: "that of the chain's dollar, or `2`",
    },
    X402_PAY_TO: {
      schema: address,
      meaning: 'recipient of the fee',
      otherwise: "FeeManager's treasury",
    },
    X402_FACILITATOR_URL: {
      schema: httpUrl,
      meaning: 'base URL of a hosted facilitator',
      otherwise: 'the Worker settles payments itself',
    },
    X402_FACILITATOR_TIMEOUT_MS: {
      schema: integer(100, 60_000),
      default: '15000',
      meaning: 'timeout of a request to the hosted facilitator, in milliseconds',
    },
    X402_RPC_URL: {
      schema: rpcUrls,
      secret: true,
      meaning: 'RPC URLs of the payment network, comma-separated',
      otherwise: '`RPC_URL`',
    },
    X402_VALIDITY_SECONDS: {
      schema: integer(30, 3_600),
      default: '300',
      meaning: 'longest validity of a payment authorization, in seconds; the client signs at most 900',
    },
  }),
  ...variablesOf('exits', {
    KEEPER_PRIVATE_KEY: {
      schema: privateKeys,
      secret: true,
      meaning: 'any funded key; fires exit rules and earns the bounty',
    },
    KEEPER_ENABLED: {
      schema: unlessFalse,
      default: 'true',
      meaning: '`false` turns the keeper off even if there is a key',
    },
    KEEPER_INTERVAL_SECONDS: {
      schema: integer(1, 60),
      default: '1',
      meaning:
        'seconds between reads of prices while positions or orders are open: the longest delay before a price that others post fires a stop; a longer interval costs fewer calls of a provider',
    },
    MARKET_SESSIONS: {
      schema: z.string().transform(text => text !== 'off'),
      default: 'enforced',
      meaning:
        '`off` lets exits and price refreshes run outside the market hours of tokens; `enforced` makes them wait',
    },
  }),
  ...variablesOf('prices', {
    PRICE_PROVIDER: {
      schema: z.enum(['local', 'http', 'coingecko', 'finnhub']),
      meaning:
        '`coingecko`, `finnhub`, `http` (any URL) or `local` (embedded chains: repeats the price that the oracle holds)',
    },
    PRICE_PROVIDER_URL: {
      schema: httpUrl,
      meaning: 'base URL of the provider; required for `http`',
      otherwise: "the provider's public URL",
    },
    PRICE_PROVIDER_KEY: {
      schema: z.string(),
      secret: true,
      meaning: "the provider's API key",
    },
    PRICE_PROVIDER_IDS: {
      schema: json(z.record(z.string(), z.string().min(1))),
      default: '{}',
      meaning: "JSON `{symbol: id}` for symbols that differ from the provider's",
    },
    DATA_STREAMS_URL: {
      schema: httpUrl,
      meaning: 'base URL of the provider of signed reports (Chainlink Data Streams)',
      otherwise: "the provider's, for real money or for tests like the chain",
    },
    DATA_STREAMS_KEY: {
      schema: z.string(),
      secret: true,
      meaning: 'API key for signed reports; needed for tokens whose oracle source is reports',
    },
    DATA_STREAMS_SECRET: {
      schema: z.string(),
      secret: true,
      meaning: 'secret that belongs to `DATA_STREAMS_KEY`',
    },
    ORACLE_UPDATER_PRIVATE_KEY: {
      schema: privateKeys,
      secret: true,
      meaning: 'key with `ORACLE_UPDATER_ROLE`; posts prices to the oracle',
    },
    PRICE_REFRESH_SECRET: {
      schema: z.string(),
      secret: true,
      meaning: 'bearer token that `POST /prices/refresh` requires',
      otherwise: 'anyone may refresh once per interval; on a chain with real money never',
    },
    PRICE_REFRESH_INTERVAL_SECONDS: {
      schema: integer(0, 86_400),
      default: '30',
      meaning: 'seconds between refreshes that need no secret, for all callers together',
    },
  }),
  ...variablesOf('reputation', {
    REPORTER_PRIVATE_KEY: {
      schema: privateKeys,
      secret: true,
      meaning:
        'key that posts the result of each week to the `ERC8004ReputationRegistry` of `CONTRACTS`; needs gas, no role',
      otherwise: 'nothing is posted',
    },
  }),
  ...variablesOf('budgets', {
    GAS_BUDGET_AGENT: {
      schema: gasBudget,
      default: '6000000,12000000',
      meaning:
        "gas per minute and per hour for one agent's intents and its owner's messages about it; in proportion, for the exit reserve of an agent and for a payer of fees",
    },
    GAS_BUDGET_LANE: {
      schema: sharedGasBudget,
      default: '600000000,15000000000',
      meaning:
        'gas per minute and per day for everything that agents and signers cause on one account of the service; in proportion, for new agents, registrations, all exit reserves together, and contracts whose transactions revert',
    },
    GAS_PRICE_GWEI: {
      schema: gasPrices,
      meaning:
        'the gas price in gwei, with the data on L1, up to which the budgets have the gas that they name, in proportion less above; and the highest at which openings, additions, orders, mandates, registrations and links are sent: reductions, exits and stops are sent at any price',
      otherwise: 'as docs/chains.md says, or `0.01,0.1`; on a development chain gas has no price',
    },
    REQUEST_BUDGET_ADDRESS: {
      schema: unitsPerMinute,
      default: '4800',
      meaning:
        'units a minute that the requests of one client address may cost, and as many again for reductions and stops: a simple read costs one, a quote or a submission four; `0` is no limit, here and in the next one',
    },
    REQUEST_BUDGET_ACCOUNT: {
      schema: unitsPerMinute,
      default: '2400',
      meaning: 'units a minute that the messages of one account may cost, from all addresses: each costs four',
    },
    MAX_PARALLEL_REQUESTS: {
      schema: integer(0, 10_000),
      default: '8',
      meaning:
        'how many requests of clients without a verified signature an isolate works on at a time (a quarter of them while agents that signed recently send requests), at most half of them from one address; the others wait; `0` is no limit',
    },
  }),
  ...variablesOf('webhooks', {
    WEBHOOK_RESOLVER_URL: {
      schema: httpUrl,
      default: 'https://cloudflare-dns.com/dns-query',
      meaning: 'DNS-over-HTTPS resolver with the JSON API; every target is resolved there before each delivery',
    },
    WEBHOOK_LOCAL_TARGETS: {
      schema: trueOrFalse,
      default: 'false',
      meaning: '`true` lets a development chain (`DEVELOPMENT_CHAIN`) deliver over plain HTTP and to private addresses',
    },
    MAX_WEBHOOKS: {
      schema: integer(1, 100_000),
      default: '1000',
      meaning:
        'webhooks of all agents together that are active and have not failed for an hour; beyond, an owner or signer may have one',
    },
  }),
  ...variablesOf('service', {
    OPERATOR_SECRET: {
      schema: z.string(),
      secret: true,
      meaning: 'bearer token of `/operator/…` and `/metrics`; with it, `/health/ready` also shows account balances',
      otherwise: 'these routes and the balances are off',
    },
    ANNOUNCED_OPERATIONS: {
      schema: operationIds,
      default: '',
      meaning: 'ids of the timelock operations that you have scheduled, comma-separated; any other raises an alert',
    },
    WATCHED_ACCOUNTS: {
      schema: json(z.record(z.string(), address)),
      default: '{}',
      meaning: 'JSON `{name: address}` of guardians, proposers and operators, whose ether for gas is watched',
    },
    BASE_URL: {
      schema: z.string().transform(url => url.replace(/\/$/, '')),
      meaning: 'public URL of the deployment',
    },
    DEPLOYMENTS: {
      schema: json(z.record(z.string(), httpUrl)),
      default: '{}',
      meaning: 'JSON `{chainId: baseUrl}` of the deployments on other chains',
    },
    ALLOWED_HOSTS: {
      schema: z.string(),
      meaning: 'more host names that `/mcp` accepts, next to the one in `BASE_URL`, comma-separated',
    },
    DOCS_ENABLED: {
      schema: unlessFalse,
      default: 'true',
      meaning: '`false` hides `/docs`',
    },
    EXPLORER_URL: {
      schema: httpUrl,
      meaning: 'block explorer of the chain, to which the pages link: its `/tx/<hash>` and `/address/<address>`',
      otherwise: "the chain's (docs/chains.md)",
    },
    PUBLIC_RPC_URL: {
      schema: httpUrl,
      meaning: 'public node of the chain, which the pages offer to a wallet that does not know the chain',
      otherwise:
        'the public node of the chain (docs/chains.md); on a development chain the first of `RPC_URL` without a path',
    },
    PRIORITY_FEE_WEI: {
      schema: z.coerce.bigint().min(0n),
      default: '0',
      meaning: 'least priority fee per gas in wei; if a node refuses a transaction, its suggestion is followed too',
    },
    EVENT_STREAM_OBJECTS: {
      schema: integer(1, 256),
      default: '16',
      meaning: 'Durable Objects that hold the event streams, 3,000 each; after a change clients resume where they were',
    },
    READ_LEASE_MS: {
      schema: integer(0, 60_000),
      default: '100',
      meaning: 'milliseconds for which an isolate may reuse a read of the latest block; `0` reads every time',
    },
    INCLUSION_TIMEOUT_MS: {
      schema: integer(100, 60_000),
      default: '15000',
      meaning: 'milliseconds that a lane waits for a transaction before it sends it again',
    },
    SUBMISSION_TIMEOUT_MS: {
      schema: integer(1_000, 60_000),
      default: '4500',
      meaning:
        'milliseconds within which a submission responds; `SUBMISSION_UNKNOWN` if its transaction is not mined by then',
    },
  }),
}

type Variables = typeof variables
export type VariableName = keyof Variables

/** The parsed value of a variable. One without a default may be undefined. */
export type ValueOf<Name extends VariableName> =
  | z.output<Variables[Name]['schema']>
  | (Variables[Name] extends { default: string } ? never : undefined)
