import { type Random, randomOf } from '../support/seeded-random.ts'

/** What the proxy does with one request to the node. */
export type RequestFate =
  | { kind: 'forward' }
  | { kind: 'drop' | 'cut' | 'drip' | 'busy' | 'broken' | 'limited' | 'reset' | 'twice' | 'overtaken' }
  | { kind: 'late' | 'hang'; ms: number }

/** An event that happens once `after` intents have a verdict. */
export type FaultEvent = { after: number } & (
  | { kind: 'drop-transaction' | 'fee-spike' | 'foreign-transaction' | 'abort' | 'evict' | 'kill' }
  | { kind: 'reorg'; depth: number }
  | { kind: 'standstill' | 'empty-account'; ms: number }
)

/** Everything that a seed decides about the environment of the service. */
export type FaultPlan = {
  seed: number
  intents: number
  agents: number
  /** The share of requests to the node that fail in some way. */
  faultRate: number
  /** The number of RPC URLs; each fails independently. */
  urls: number
  /** Whether the node behaves as a sequencer: it rejects future nonces and responds only after inclusion. */
  isSequencer: boolean
  /** Whether receipts of synchronous sends lack the block hash. */
  hasZeroHash: boolean
  /** Whether registrations cost a fee, which some payers revoke while it is being settled. */
  isPaid: boolean
  /** Whether agents place and cancel orders while prices move, and a keeper executes them. */
  hasOrders: boolean
  events: FaultEvent[]
  /** Returns the fate of a request, by its content and by how often that content has been sent. */
  fateOf(content: string, ordinal: number): RequestFate
  /**
   * Whether a response about a nonce, the chain id or a quantity is wrong: the previous nonce, the id of another chain,
   * or no quantity at all.
   */
  isResponseWrong(content: string, ordinal: number): boolean
}

const MAX_AGENTS = 40
const EVENT_KINDS = [
  'kill',
  'reorg',
  'drop-transaction',
  'standstill',
  'abort',
  'foreign-transaction',
  'fee-spike',
  'evict',
  'empty-account',
] as const
const LONG_STANDSTILL_MS = 10_000

/** Returns the plan of a seed. The same seed always yields the same plan. */
export function planOf(seed: number, intents: number): FaultPlan {
  const random = randomOf('plan', seed)
  const faultRate = 0.01 + 0.09 * random.next()
  const fates = fatesOf(random)
  return {
    seed,
    intents,
    agents: Math.min(MAX_AGENTS, Math.ceil(intents / 4)),
    faultRate,
    urls: random.integer(1, 2),
    isSequencer: random.chance(0.5),
    hasZeroHash: random.chance(0.5),
    isPaid: randomOf('payment', seed).chance(0.4),
    hasOrders: seed % 2 === 0,
    events: eventsOf(random, seed, intents),
    fateOf(content, ordinal) {
      const own = randomOf('fate', seed, content, ordinal)
      if (!own.chance(faultRate)) return { kind: 'forward' }
      const kind = own.pick(fates)
      if (kind === 'late') return { kind, ms: own.integer(20, 1_500) }
      // Close to the service's own timeout for a response.
      return kind === 'hang' ? { kind, ms: own.integer(3_000, 6_000) } : { kind }
    },
    isResponseWrong: (content, ordinal) => randomOf('lie', seed, content, ordinal).chance(faultRate / 2),
  }
}

/**
 * Returns fates to pick from. Each seed has many of two kinds, because an even mixture would make all seeds alike; not
 * of `drip` and `hang`, which hold every request until its timeout.
 */
function fatesOf(random: Random) {
  const frequent = () =>
    random.pick(['drop', 'cut', 'busy', 'broken', 'limited', 'reset', 'twice', 'overtaken', 'late'] as const)
  const always = [
    'drop',
    'cut',
    'cut',
    'drip',
    'reset',
    'busy',
    'broken',
    'limited',
    'twice',
    'overtaken',
    'late',
    'hang',
  ] as const
  return [...always, ...[frequent(), frequent()].flatMap(kind => [kind, kind, kind, kind])]
}

function eventsOf(random: Random, seed: number, intents: number): FaultEvent[] {
  // Consecutive seeds start with different kinds, so that a few seeds cover all of them.
  const rest = EVENT_KINDS.filter((_, index) => index !== seed % EVENT_KINDS.length)
  const kinds = [EVENT_KINDS[seed % EVENT_KINDS.length] ?? 'kill']
  const count = random.integer(3, 6)
  while (kinds.length < count) {
    const kind = random.pick(rest)
    // A lane pauses after two foreign transactions, so a plan has at most one.
    if (kind !== 'foreign-transaction' || !kinds.includes(kind)) kinds.push(kind)
  }
  const order: typeof kinds = []
  while (kinds.length > 0) order.push(...kinds.splice(random.integer(0, kinds.length - 1), 1))
  const spacing = (0.75 * intents) / order.length
  return order.map((kind, index): FaultEvent => {
    const after = Math.round(0.12 * intents + spacing * (index + random.next()))
    if (kind === 'reorg') return { after, kind, depth: random.integer(1, 3) }
    if (kind === 'standstill')
      return { after, kind, ms: random.chance(0.25) ? LONG_STANDSTILL_MS : random.integer(800, 2_500) }
    if (kind === 'empty-account') return { after, kind, ms: random.integer(500, 2_000) }
    return { after, kind }
  })
}
