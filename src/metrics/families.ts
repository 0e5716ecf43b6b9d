/** Seconds, for responses and requests to nodes: reads of one round trip at the lower end, deadlines at the upper. */
const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Seconds, for transactions: from one block of a fast sequencer to a congested chain. */
const INCLUSION_BUCKETS = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300]

/** An `info` has the value 1 and labels that say something; its sample's name is the family's with `_info`. */
export type Family = { help: string; labels: readonly string[]; unit?: string; type?: 'info' }

/** What isolates count. A sample's name is the family's with `_total`. */
export const counters = {
  ats_requests: {
    help: 'Requests by operation, surface (http, mcp) and class of the status. The operation is none for pages and unknown paths.',
    labels: ['operation', 'surface', 'status'],
  },
  ats_refusals: { help: 'Error responses by code and surface.', labels: ['code', 'surface'] },
  ats_rpc_requests: {
    help: 'JSON-RPC requests by method, node and result: ok, error (of the request, such as a revert), fault (of the node), timeout, canceled.',
    labels: ['method', 'node', 'result'],
  },
  ats_rpc_refused_reads: {
    help: 'Reads that every healthy node serves and this one refused or returned no data to, by node and method.',
    labels: ['node', 'method'],
  },
  ats_transactions: {
    help: 'Transactions in a block by account, kind of intent and result (mined, reverted).',
    labels: ['account', 'kind', 'result'],
  },
  ats_transaction_gas: {
    help: 'Gas that transactions used by part: l2 for executing the call, l1 for its data on L1 (Arbitrum chains).',
    labels: ['account', 'kind', 'part'],
    unit: 'gas',
  },
  ats_transaction_fees_ether: { help: 'Fees that transactions paid.', labels: ['account'], unit: 'ether' },
  ats_gas_budget_refusals: {
    help: 'Requests that a gas budget had no room for, by budget and window (minute, day).',
    labels: ['budget', 'window'],
  },
  ats_log_events: { help: 'Log lines by event; docs/operations.md explains each.', labels: ['event'] },
  ats_keeper_cycles: { help: 'Cycles of the keeper by result (ok, failed).', labels: ['result'] },
  ats_index_repaired: {
    help: 'Rows that the index lacked and its audit had read again. It is not zero only if a node returned incomplete logs.',
    labels: [],
  },
} as const satisfies Record<string, Family>

/** Distributions that isolates record, in seconds. */
export const histograms = {
  ats_request_duration_seconds: {
    help: 'Time to the response, or to the opening of an event stream.',
    labels: ['operation', 'surface'],
    unit: 'seconds',
    buckets: LATENCY_BUCKETS,
  },
  ats_rpc_request_duration_seconds: {
    help: 'Time of an HTTP request to a node; the method of a JSON-RPC batch is batch.',
    labels: ['method', 'node'],
    unit: 'seconds',
    buckets: LATENCY_BUCKETS,
  },
  ats_inclusion_duration_seconds: {
    help: 'Time from signing a transaction to its receipt.',
    labels: ['account'],
    unit: 'seconds',
    buckets: INCLUSION_BUCKETS,
  },
} as const satisfies Record<string, Family & { buckets: readonly number[] }>

/** Read from the parts of the service during a scrape. */
export const gauges = {
  ats_build: { help: 'The version of the service and the chain id.', labels: ['version', 'chain_id'], type: 'info' },
  ats_part_up: {
    help: 'Whether a part of the service could be read for this scrape. Without it, its gauges are missing.',
    labels: ['part'],
  },
  ats_ready: { help: 'Whether positions can be opened, as in /health/ready.', labels: [] },
  ats_readiness_problems: { help: 'The number of problems in /health/ready.', labels: [] },
  ats_chain_head_block: { help: 'Number of the newest block.', labels: [] },
  ats_chain_head_age_seconds: { help: 'Age of the newest block.', labels: [], unit: 'seconds' },
  ats_chain_halted: {
    help: 'Whether the newest block is more than five minutes old, and, on a chain that makes blocks on demand, a transaction waits.',
    labels: [],
  },
  ats_clock_skew_seconds: {
    help: "How far the clock is ahead of all nodes' clocks, negative if behind; 0 within a minute.",
    labels: [],
    unit: 'seconds',
  },
  ats_node_disagrees: {
    help: 'Whether a node of several is on another chain, disagrees about a final block, is a minute behind, or does not respond.',
    labels: ['node'],
  },
  ats_gas_price_ratio: {
    help: 'What gas of an opening costs, relative to the highest price of GAS_PRICE_GWEI; above 1 it is refused.',
    labels: ['account'],
  },
  ats_stale_prices: { help: 'Tokens whose price is too old to trade although their market trades.', labels: [] },
  ats_restricted_tokens: {
    help: 'Tokens that a vault cannot sell because their issuer paused, blocked or burned.',
    labels: [],
  },
  ats_price_seconds_left: {
    help: 'Time until the first price of an open market is too old to trade. Missing without such a price.',
    labels: [],
    unit: 'seconds',
  },
  ats_timelock_operations: {
    help: 'Operations of the timelock that wait, by whether ANNOUNCED_OPERATIONS has them.',
    labels: ['announced'],
  },
  ats_watched_account_transactions: {
    help: 'Transactions that an account of WATCHED_ACCOUNTS can pay for at the present gas price.',
    labels: ['account'],
  },
  ats_paused_vaults: { help: 'Vaults in which trading is paused.', labels: [] },
  ats_closed_intakes: { help: 'Kinds of intake that the operator has closed.', labels: [] },
  ats_lane_pending_transactions: {
    help: 'Depth of a lane: transactions that are not in a block yet.',
    labels: ['account'],
  },
  ats_lane_oldest_pending_seconds: {
    help: 'Age of the oldest transaction of a lane that is not in a block yet.',
    labels: ['account'],
    unit: 'seconds',
  },
  ats_lane_capacity: { help: 'Transactions that a lane currently allows in flight.', labels: ['account'] },
  ats_lane_paused: { help: 'Whether a lane accepts nothing, by reason.', labels: ['account', 'reason'] },
  ats_account_balance_ether: { help: 'Balance that pays for gas.', labels: ['account'], unit: 'ether' },
  ats_keeper_lag_seconds: {
    help: 'How far the block that the keeper evaluated last is behind the newest block.',
    labels: [],
    unit: 'seconds',
  },
  ats_keeper_open_positions: { help: 'Positions that the keeper watches.', labels: [] },
  ats_keeper_pending_exits: { help: 'Positions whose exit is in flight.', labels: [] },
  ats_keeper_open_orders: { help: 'Orders that the keeper watches.', labels: [] },
  ats_keeper_pending_orders: { help: 'Orders with a transaction in flight.', labels: [] },
  ats_index_lag_blocks: { help: 'Blocks between the index and the newest block.', labels: [], unit: 'blocks' },
  ats_index_lag_seconds: { help: 'Block time between the index and the newest block.', labels: [], unit: 'seconds' },
  ats_index_complete: {
    help: 'Whether the index has all migrations and has reached the chain once; without, trades and lists are incomplete.',
    labels: [],
  },
  ats_webhooks: { help: 'Active webhooks.', labels: [] },
  ats_webhooks_failing: { help: 'Active webhooks that have failed for an hour.', labels: [] },
  ats_event_streams: { help: 'Open event streams.', labels: [] },
  ats_event_streams_failing: { help: 'Whether the event streams do not follow the index.', labels: [] },
} as const satisfies Record<string, Family>

export type CounterName = keyof typeof counters
export type HistogramName = keyof typeof histograms
export type GaugeName = keyof typeof gauges
/** The label values of a family. */
export type LabelsOf<Labels extends readonly string[]> = Record<Labels[number], string>
