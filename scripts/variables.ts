export type Variable = {
  name: string
  group: Group
  /** One sentence without a period, in Markdown. */
  meaning: string
  secret?: true
  /** The value that applies when the variable is absent. */
  default?: string
  /** What applies when the variable is absent, if that is not a value. */
  otherwise?: string
}

/** What the variables of a group configure. */
export const groups = {
  chain: 'The chain and the contracts. Everything but the documentation and /health needs them.',
  trading: 'Relaying signed intents. Without a key the service is read-only.',
  registration: 'Relaying registrations and settling registration fees.',
  fee: 'The registration fee over x402.',
  exits: 'The keeper, which fires exit rules.',
  prices: 'Market data, and posting it to the oracle.',
  reputation: 'Posting track records to ERC-8004; needs BASE_URL too.',
  budgets: 'What strangers may cost the operator; docs/operations.md.',
  webhooks: "Signed notifications of an agent's events; docs/guides/webhooks.md.",
  service: 'The service itself.',
} as const
export type Group = keyof typeof groups

/** Every variable that the Worker reads. docs/configuration.md and .dev.vars.example are generated from this list. */
export const variables: Variable[] = [
  {
    name: 'CHAIN_ID',
    group: 'chain',
    meaning: 'chain id: 42161, 421614, 46630, or the id of an embedded chain',
  },
  {
    name: 'RPC_URL',
    group: 'chain',
    secret: true,
    meaning: 'RPC URLs, comma-separated; every URL after the first is a fallback',
  },
  {
    name: 'CONTRACTS',
    group: 'chain',
    meaning: 'JSON `{name: address}` from the deployment file',
  },
  {
    name: 'TOKENS',
    group: 'chain',
    meaning: 'JSON `{symbol: address}`; saves a round trip, and the on-chain registry takes precedence',
    default: '{}',
  },
  {
    name: 'VAULTS',
    group: 'chain',
    meaning: 'JSON `{slug: address}`; saves a round trip, and the on-chain registry takes precedence',
    default: '{}',
  },
  {
    name: 'START_BLOCK',
    group: 'chain',
    meaning: 'block of the deployment, or an earlier one; the indexer starts there',
    default: '0',
  },
  {
    name: 'CHAIN_MAY_RESTART',
    group: 'chain',
    meaning:
      '`true` for an embedded chain that starts over: lanes then drop their journal once every node shows another genesis block',
    default: 'false',
  },
  {
    name: 'EXECUTOR_PRIVATE_KEY',
    group: 'trading',
    secret: true,
    meaning: 'keys with `EXECUTOR_ROLE`, comma-separated; each one is a lane that relays intents',
  },
  {
    name: 'RELAYER_PRIVATE_KEY',
    group: 'registration',
    secret: true,
    meaning: "key of FeeManager's relayer; relays registrations and ERC-8004 links, and settles fees",
  },
  {
    name: 'X402_ENABLED',
    group: 'fee',
    meaning: '`true` charges the registration fee over HTTP 402',
    default: 'false',
  },
  {
    name: 'X402_NETWORK',
    group: 'fee',
    meaning: 'CAIP-2 network of the payment, such as `eip155:8453`',
    otherwise: "the deployment's chain",
  },
  {
    name: 'X402_ASSET',
    group: 'fee',
    meaning: 'address of the EIP-3009 token of the payment',
    otherwise: "FeeManager's asset",
  },
  {
    name: 'X402_ASSET_NAME',
    group: 'fee',
    meaning: "name in the token's EIP-712 domain",
    default: 'USD Coin',
  },
  {
    name: 'X402_ASSET_VERSION',
    group: 'fee',
    meaning: "version in the token's EIP-712 domain",
    default: '2',
  },
  {
    name: 'X402_PAY_TO',
    group: 'fee',
    meaning: 'recipient of the fee',
    otherwise: "FeeManager's treasury",
  },
  {
    name: 'X402_FACILITATOR_URL',
    group: 'fee',
    meaning: 'base URL of a hosted facilitator',
    otherwise: 'the Worker settles payments itself',
  },
  {
    name: 'X402_FACILITATOR_TIMEOUT_MS',
    group: 'fee',
    meaning: 'timeout of a request to the hosted facilitator, in milliseconds',
    default: '15000',
  },
  {
    name: 'X402_RPC_URL',
    group: 'fee',
    secret: true,
    meaning: 'RPC URLs of the payment network, comma-separated',
    otherwise: '`RPC_URL`',
  },
  {
    name: 'X402_VALIDITY_SECONDS',
    group: 'fee',
    meaning: 'longest validity of a payment authorization, in seconds; the client signs at most 900',
    default: '300',
  },
  {
    name: 'KEEPER_PRIVATE_KEY',
    group: 'exits',
    secret: true,
    meaning: 'any funded key; fires exit rules and earns the bounty',
  },
  {
    name: 'KEEPER_ENABLED',
    group: 'exits',
    meaning: '`false` turns the keeper off even if there is a key',
    default: 'true',
  },
  {
    name: 'MARKET_SESSIONS',
    group: 'exits',
    meaning: '`off` lets exits and price refreshes run outside equity market hours; `enforced` makes them wait',
    default: 'enforced',
  },
  {
    name: 'PRICE_PROVIDER',
    group: 'prices',
    meaning:
      '`coingecko`, `finnhub`, `http` (any URL) or `local` (embedded chains: repeats the price that the oracle holds)',
  },
  {
    name: 'PRICE_PROVIDER_URL',
    group: 'prices',
    meaning: 'base URL of the provider; required for `http`',
    otherwise: "the provider's public URL",
  },
  {
    name: 'PRICE_PROVIDER_KEY',
    group: 'prices',
    secret: true,
    meaning: "the provider's API key",
  },
  {
    name: 'PRICE_PROVIDER_IDS',
    group: 'prices',
    meaning: "JSON `{symbol: id}` for symbols that differ from the provider's",
    default: '{}',
  },
  {
    name: 'ORACLE_UPDATER_PRIVATE_KEY',
    group: 'prices',
    secret: true,
    meaning: 'key with `ORACLE_UPDATER_ROLE`; posts prices to the oracle',
  },
  {
    name: 'PRICE_REFRESH_SECRET',
    group: 'prices',
    secret: true,
    meaning: 'bearer token that `POST /prices/refresh` requires',
    otherwise: 'anyone may refresh once per interval; on a chain with real money nobody',
  },
  {
    name: 'PRICE_REFRESH_INTERVAL_SECONDS',
    group: 'prices',
    meaning: 'seconds between refreshes that need no secret, for everybody together',
    default: '30',
  },
  {
    name: 'REPORTER_PRIVATE_KEY',
    group: 'reputation',
    secret: true,
    meaning:
      'key that posts the result of each week to the `ERC8004ReputationRegistry` of `CONTRACTS`; needs gas, no role',
    otherwise: 'nothing is posted',
  },
  {
    name: 'GAS_BUDGET_AGENT',
    group: 'budgets',
    meaning: "gas per minute and per day for one agent's intents",
    default: '6000000,300000000',
  },
  {
    name: 'GAS_BUDGET_OWNER',
    group: 'budgets',
    meaning: 'gas per minute and per day for the intents, registrations and links of one owner and all of its agents',
    default: '30000000,1500000000',
  },
  {
    name: 'GAS_BUDGET_PAYER',
    group: 'budgets',
    meaning: 'gas per minute and per day for the settlements of one payer of fees',
    default: '2000000,20000000',
  },
  {
    name: 'GAS_BUDGET_LANE',
    group: 'budgets',
    meaning: 'gas per minute and per day for everything that agents and signers cause on one account of the service',
    default: '600000000,15000000000',
  },
  {
    name: 'GAS_BUDGET_NEW_AGENTS',
    group: 'budgets',
    meaning: 'gas per minute and per day for all registrations, and all intents of agents that are not a day old',
    default: '150000000,3000000000',
  },
  {
    name: 'GAS_BUDGET_NEW_CONTRACT_PAYERS',
    group: 'budgets',
    meaning: 'gas per minute and per day for reverted settlements of all contracts that have never paid',
    default: '500000,5000000',
  },
  {
    name: 'GAS_BUDGET_EXIT_RESERVE',
    group: 'budgets',
    meaning: "gas per minute and per day for one agent's reductions once another budget is exhausted",
    default: '3000000,30000000',
  },
  {
    name: 'RATE_LIMIT_READS',
    group: 'budgets',
    meaning: 'reads per minute of one client address; `0` is no limit, here and in the other rate limits',
    default: '6000',
  },
  {
    name: 'RATE_LIMIT_QUOTES',
    group: 'budgets',
    meaning: 'quotes per minute of one client address',
    default: '1200',
  },
  {
    name: 'RATE_LIMIT_SUBMISSIONS',
    group: 'budgets',
    meaning: 'submissions per minute of one client address; reductions and stops have no limit',
    default: '1200',
  },
  {
    name: 'RATE_LIMIT_REGISTRATIONS',
    group: 'budgets',
    meaning: 'registrations per minute of one client address',
    default: '120',
  },
  {
    name: 'RATE_LIMIT_STREAMS',
    group: 'budgets',
    meaning: 'event streams that one client address may open per minute',
    default: '1200',
  },
  {
    name: 'RATE_LIMIT_MCP_SESSIONS',
    group: 'budgets',
    meaning: 'MCP sessions that one client address may open per minute',
    default: '300',
  },
  {
    name: 'RATE_LIMIT_SIGNER',
    group: 'budgets',
    meaning: 'messages per minute that one account has signed, from all addresses',
    default: '600',
  },
  {
    name: 'RATE_LIMIT_MCP_SESSION',
    group: 'budgets',
    meaning: 'messages per minute in one MCP session',
    default: '1200',
  },
  {
    name: 'EVENT_STREAM_OBJECTS',
    group: 'budgets',
    meaning: 'Durable Objects that hold the event streams, 3,000 each; after a change clients resume where they were',
    default: '16',
  },
  {
    name: 'RATE_LIMIT_BURST_SECONDS',
    group: 'budgets',
    meaning:
      "how many seconds' worth of a rate limit may be used at once, at least 60 requests; `0` allows a whole minute's worth",
    default: '20',
  },
  {
    name: 'MAX_PARALLEL_REQUESTS',
    group: 'budgets',
    meaning:
      'how many requests of clients without a verified signature an isolate works on at a time (a quarter of them while agents that signed recently send requests), at most half of them from one address; the others wait; `0` is no limit',
    default: '8',
  },
  {
    name: 'MAX_STREAMS_PER_ADDRESS',
    group: 'budgets',
    meaning: 'event streams that one client address may have open',
    default: '250',
  },
  {
    name: 'WEBHOOKS_ENABLED',
    group: 'webhooks',
    meaning: '`false` turns webhooks off',
    default: 'true',
  },
  {
    name: 'WEBHOOK_RESOLVER_URL',
    group: 'webhooks',
    meaning: 'DNS-over-HTTPS resolver with the JSON API; every target is resolved there before each delivery',
    default: 'https://cloudflare-dns.com/dns-query',
  },
  {
    name: 'WEBHOOK_LOCAL_TARGETS',
    group: 'webhooks',
    meaning: '`true` lets an embedded chain (`CHAIN_MAY_RESTART`) deliver over plain HTTP and to private addresses',
    default: 'false',
  },
  {
    name: 'MAX_WEBHOOKS',
    group: 'webhooks',
    meaning: 'webhooks of all agents together',
    default: '1000',
  },
  {
    name: 'MAX_WEBHOOKS_PER_AGENT',
    group: 'webhooks',
    meaning: 'webhooks of one agent, at most 20',
    default: '5',
  },
  {
    name: 'OPERATOR_SECRET',
    group: 'service',
    secret: true,
    meaning:
      'bearer token of `/operator/intake`, `/operator/index` and `/metrics`; with it, `/health/ready` also shows account balances',
    otherwise: 'nobody can use these routes or see the balances',
  },
  {
    name: 'BASE_URL',
    group: 'service',
    meaning: 'public URL of the deployment',
  },
  {
    name: 'DEPLOYMENTS',
    group: 'service',
    meaning: 'JSON `{chainId: baseUrl}` of the deployments on other chains',
    default: '{}',
  },
  {
    name: 'ALLOWED_HOSTS',
    group: 'service',
    meaning: 'host names that `/mcp` accepts besides that of `BASE_URL`, comma-separated',
  },
  {
    name: 'DOCS_ENABLED',
    group: 'service',
    meaning: '`false` hides `/docs`',
    default: 'true',
  },
  {
    name: 'EXPLORER_URL',
    group: 'service',
    meaning: 'block explorer of the chain, to which the pages link: its `/tx/<hash>` and `/address/<address>`',
  },
  {
    name: 'PRIORITY_FEE_WEI',
    group: 'service',
    meaning: 'priority fee per gas in wei; the supported chains need none',
    default: '0',
  },
  {
    name: 'READ_LEASE_MS',
    group: 'service',
    meaning: 'milliseconds for which an isolate may reuse a read of the latest block; `0` reads every time',
    default: '100',
  },
  {
    name: 'HEAD_AGE_MS',
    group: 'service',
    meaning:
      'milliseconds that a block must be known before the index reads up to it, so that every node of a provider has it; `0` for a single node',
    default: '2000',
  },
  {
    name: 'INCLUSION_TIMEOUT_MS',
    group: 'service',
    meaning: 'milliseconds that a lane waits for a transaction before it sends it again',
    default: '15000',
  },
  {
    name: 'SUBMISSION_TIMEOUT_MS',
    group: 'service',
    meaning:
      'milliseconds within which a submission responds; `SUBMISSION_UNKNOWN` if its transaction is not mined by then',
    default: '4500',
  },
]
