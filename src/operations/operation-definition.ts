import type { z } from 'zod'
import type { RequestKind } from '../limits/prices.ts'

/** The groups of the API reference, in reading order. */
export const tags = {
  Discovery: 'What this deployment offers and whether it is ready to trade.',
  Vaults: 'Thematic vaults, the risk policy of each track, and the tokens each vault allows.',
  Prices: 'Prices from the on-chain oracle, in US dollars.',
  Agents: 'Agent registration, agent records and linked ERC-8004 identities.',
  Owners: "What an agent's owner signs: mandate, stop, transfer, signer, cancel. The owner pays no gas.",
  Trading: 'Quotes and signed intents: fetch a quote, sign its typed data, then post its body with the signature.',
  Orders: 'Orders that wait on chain for a price or a time: limits, trailing stops, purchases in parts, exits on time.',
  Positions: "An agent's positions, risk state, equity and trades.",
  Live: 'Server-sent events.',
  Webhooks: "An agent's events, posted to a URL and signed by Standard Webhooks 1.0.0.",
  Transactions: 'Status of intents and transactions.',
  Signing: 'Help with EIP-712 signatures. These endpoints never send a transaction.',
  Operator: 'What the operator of this deployment reads, and changes without a deploy.',
} as const
type Tag = keyof typeof tags

/**
 * Who may reuse a response.
 * - `none`: not cached. For writes, for quotes, and for anything that is not a function of the block in `asOf`.
 * - `etag`: clients, after revalidation. The ETag has the block in `asOf` and a digest of the content.
 * - `isolate`: clients as above, and this isolate through its read cache. Only for data that no agent's intent changes.
 */
export type CachePolicy = 'none' | 'etag' | 'isolate'

/** The sets of MCP tools that a client may select with `/mcp?toolsets=`. */
export const toolSets = {
  market: 'Vaults, tokens and prices.',
  agents: 'Registration and agent records.',
  trade: 'Quotes, signed intents, open positions, risk state, transactions.',
  orders: 'Orders that wait for a price or a time.',
  history: 'Past trades and positions, equity, statistics.',
  owner: "What an agent's owner signs: mandate, stop, transfer, signer, cancel.",
  venue: 'What a size costs in the pool now, corporate actions, and what waits for a price of a vault.',
  leaderboard: 'Agents ranked by their track records.',
  webhooks: "Webhooks: an agent's events posted to a URL.",
} as const
export type ToolSet = keyof typeof toolSets

/** What a client gets that selects nothing: the specification's tools. */
export const defaultToolSets: readonly ToolSet[] = ['market', 'agents', 'trade', 'history']

/** The set of the tools of each group, unless a tool names another. */
const setOfTag: Record<Tag, ToolSet> = {
  Discovery: 'market',
  Vaults: 'market',
  Prices: 'market',
  Agents: 'agents',
  Owners: 'owner',
  Trading: 'trade',
  Orders: 'orders',
  Positions: 'trade',
  Live: 'trade',
  Webhooks: 'webhooks',
  Transactions: 'trade',
  Signing: 'trade',
  Operator: 'owner',
}
export const toolSetOf = ({ tag, tool }: { tag: Tag; tool: ToolDefinition }): ToolSet => tool.set ?? setOfTag[tag]

/**
 * The MCP tool of an operation. The description is written for a model: what it does, what comes before and after,
 * units.
 */
export type ToolDefinition = {
  name: `svc_${string}`
  set?: ToolSet
  description: string
  brief?: BriefList
  /** What a host that shows cards makes of the result. */
  card?: Card
}

export const CARDS = ['ticket', 'agent'] as const
export type Card = (typeof CARDS)[number]

/**
 * A list whose result is long: a tool returns each entry of the field `list` in short, unless it is called with detail
 * "full".
 */
export type BriefList = { list: string; entry: (entry: never) => object }

/** The MCP resource with the same content as an operation. A URI with parameters (`{agentId}`) is a template. */
export type ResourceDefinition = { uri: `svc://${string}`; name: string; title: string; description: string }

export type Method = 'get' | 'post' | 'put'

/** What every endpoint has, whether it returns JSON or a stream. */
export type EndpointDefinition<
  P extends z.ZodObject | undefined = z.ZodObject | undefined,
  Q extends z.ZodObject | undefined = z.ZodObject | undefined,
> = {
  /** The OpenAPI operation id. */
  id: string
  /** `get` unless it is given. */
  method?: Method
  path: `/${string}`
  tag: Tag
  summary: string
  description: string
  /** The parameters of the path, unless they are those that `defineOperation` knows by name. */
  params?: P
  query?: Q
  /** The error statuses, without the ones that `errorStatuses` adds; 404, 502 and 503 unless they are given. */
  errors?: readonly number[]
  /** OpenAPI descriptions of single statuses, where the generic one does not fit. */
  statusDescriptions?: Readonly<Record<number, string>>
}

/** What `defineOperation` takes: everything the two surfaces and the API documents say about an operation. */
export type OperationDefinition<
  P extends z.ZodObject | undefined = z.ZodObject | undefined,
  Q extends z.ZodObject | undefined = z.ZodObject | undefined,
  B extends z.ZodObject | undefined = z.ZodObject | undefined,
  O extends z.ZodType = z.ZodType,
> = EndpointDefinition<P, Q> & {
  tool?: ToolDefinition
  resource?: ResourceDefinition
  body?: B
  /** The body may be omitted; all of its fields are optional. */
  bodyIsOptional?: true
  /** HTTP: the secret that a bearer token may carry. `refresh` is required if the deployment has it. */
  security?: 'refresh' | 'operator'
  /** HTTP: renders the output for `?format=md` and `Accept: text/markdown`. */
  markdown?: (output: z.input<O>) => string
  /** HTTP: the list of the output that `?format=csv` and `Accept: text/csv` return, one column per field. */
  csv?: keyof z.input<O> & string
  /** Who may reuse a response; `none` unless it is given. */
  cache?: CachePolicy
  /** May require an x402 payment: responds 402 until it is paid. */
  paid?: true
  /** A POST that sends nothing, so that it responds as fast as a GET. */
  readsOnly?: true
  /** The kind of request, whose price it has, if that does not follow from the rest. */
  requestKind?: RequestKind
  /** What a request costs in units, if that is not the price of its kind. */
  units?: number
  /** A read that costs no CPU and no node, so that it is answered however many requests wait. */
  takesNoTurn?: true
  /** A read that waits for what has not happened yet, longer than reads may take. */
  waits?: true
  /**
   * Returns what of the input changes when a call is repeated because its output is not final, and for how long that
   * makes sense; undefined if the output is final.
   */
  continues?(input: Record<string, unknown>, output: z.output<O>): { input: object; forMs: number } | undefined
  /** 200 unless it is given. */
  status?: 200 | 201
  /** The status of a repeated request that was executed before. */
  replay?: 200
  output: O
}
