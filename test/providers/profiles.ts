/** How a public JSON-RPC provider differs from a node of one's own. A seed decides when its faults occur. */
export type ProviderProfile = {
  /**
   * How many replicas the load balancer chooses from: for each call of a batch on its own, or for each HTTP request.
   */
  replicas: number
  splitsBatches: boolean
  /** The fewest and the most blocks that a replica is behind the newest one. */
  lagBlocks: readonly [least: number, most: number]
  /** The largest range of `eth_getLogs`, with the message that rejects a larger one. */
  logs?: { maxBlocks: number; message: string }
  /** The most logs that one request returns; more are refused. */
  maxLogs?: number
  /** The share of requests for logs that are refused, whatever their pace and range. */
  refusedLogs?: number
  /** The share of HTTP requests that get a text with the status 200. */
  textShare?: number
  /** Of how many blocks the node has the state; it calls that of older ones missing metadata. */
  stateBlocks?: number
  /** The most calls in one batch; 1 rejects batches. */
  maxBatch: number
  /** The share of HTTP requests that get a 429, its body and its Retry-After header. */
  throttle?: { share: number; body: 'json' | 'html'; retryAfterSeconds?: number }
  /** Whether `eth_call` accepts a state override. */
  acceptsOverrides: boolean
  hasTraces: boolean
  hasSyncSend: boolean
  /** How many blocks `finalized` is behind the newest block: 20 minutes on a rollup. */
  finalizedBlocks: number
  /** Arbitrum's additional fields of receipts and blocks, and its NodeInterface. */
  isArbitrum: boolean
  /** The gas for L1 data that estimates and receipts contain, normally and while L1 is expensive. */
  l1Gas: { normal: number; spike: number }
  /** The milliseconds between two blocks, with transactions or without. */
  blockMs: number
  /** Where prices come from: nothing is posted for signed reports. */
  priceSource?: 'reports'
  /** The chain makes blocks only for transactions, and its clock stands still in between. */
  isQuiet: boolean
}

const own: ProviderProfile = {
  replicas: 1,
  splitsBatches: true,
  lagBlocks: [0, 0],
  maxBatch: 100,
  acceptsOverrides: true,
  hasTraces: true,
  hasSyncSend: true,
  finalizedBlocks: 64,
  isArbitrum: false,
  l1Gas: { normal: 0, spike: 0 },
  blockMs: 250,
  isQuiet: false,
}

const arbitrum: ProviderProfile = {
  ...own,
  hasTraces: false,
  finalizedBlocks: 4_800,
  isArbitrum: true,
  l1Gas: { normal: 60_000, spike: 60_000 },
}

/**
 * The profiles by name. Limits are the documented ones of the providers' smallest plans; lag is what their pools show
 * at Arbitrum's four blocks a second, and at Robinhood Chain's ten in the profile of its public node.
 */
export const profiles = {
  'alchemy-free': {
    ...arbitrum,
    replicas: 3,
    lagBlocks: [0, 1],
    logs: {
      maxBlocks: 10,
      message:
        'Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x0, 0x9]',
    },
    throttle: { share: 0.02, body: 'json', retryAfterSeconds: 1 },
  },
  infura: {
    ...arbitrum,
    replicas: 3,
    lagBlocks: [0, 1],
    logs: { maxBlocks: 10_000, message: 'query returned more than 10000 results' },
    throttle: { share: 0.01, body: 'json', retryAfterSeconds: 1 },
    hasSyncSend: false,
  },
  quicknode: {
    ...arbitrum,
    replicas: 2,
    lagBlocks: [0, 1],
    logs: { maxBlocks: 5, message: 'eth_getLogs is limited to a 5 range' },
    throttle: { share: 0.02, body: 'html' },
    hasSyncSend: false,
  },
  'public-arbitrum': {
    ...arbitrum,
    replicas: 4,
    lagBlocks: [0, 2],
    throttle: { share: 0.03, body: 'html', retryAfterSeconds: 1 },
  },
  'lagging-pool': { ...own, replicas: 4, lagBlocks: [0, 2] },
  'no-overrides': { ...own, acceptsOverrides: false, hasTraces: false },
  'no-batch': { ...own, maxBatch: 1, hasSyncSend: false },
  'l1-gas-spike': { ...arbitrum, l1Gas: { normal: 60_000, spike: 4_000_000 } },
  'quiet-chain': { ...arbitrum, isQuiet: true },
  'robinhood-public': {
    ...arbitrum,
    replicas: 4,
    lagBlocks: [0, 2],
    logs: { maxBlocks: 10_000, message: 'block range exceeds 10000' },
    maxLogs: 10_000,
    refusedLogs: 0.5,
    textShare: 0.01,
    stateBlocks: 1_800,
    finalizedBlocks: 7_800,
    blockMs: 100,
    priceSource: 'reports',
  },
} as const satisfies Record<string, ProviderProfile>

export type ProviderName = keyof typeof profiles
export const providerNames = Object.keys(profiles) as ProviderName[]
