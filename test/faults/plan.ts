import { type Random, randomOf } from './random.ts'

/** What the way to the node does to one request. */
export type Fate =
  | { is: 'forward' }
  | { is: 'drop' | 'cut' | 'busy' | 'broken' | 'limited' | 'reset' | 'twice' | 'overtaken' }
  | { is: 'late' | 'hang'; ms: number }

/** Something that happens once `after` intents have been answered. */
export type Event = { after: number } & (
  | { is: 'drop-transaction' | 'fee-spike' | 'foreign-transaction' | 'abort' | 'evict' | 'kill' }
  | { is: 'reorg'; depth: number }
  | { is: 'standstill' | 'empty-account'; ms: number }
)

/** Everything that a seed decides about the world around the service. */
export type Plan = {
  seed: number
  intents: number
  agents: number
  /** The share of the requests to the node that do not just pass. */
  faultRate: number
  /** How many ways lead to the node; each has faults of its own. */
  urls: number
  /** Whether the node takes transactions as a sequencer does: no future nonce, an answer only with the inclusion. */
  isSequencer: boolean
  /** Whether receipts of synchronous sends have no block hash yet. */
  hasZeroHash: boolean
  events: Event[]
  /** What happens to a request, by what it says and how often that has been said. */
  fateOf(content: string, ordinal: number): Fate
  /** Whether a question after nonce or chain id is answered with yesterday's nonce, or by a node of another chain. */
  liesAbout(content: string, ordinal: number): boolean
}

const AGENTS = 40
const eventKinds = [
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
/** The chain stands still this long where a seed is thorough about it. */
const LONG_STANDSTILL_MS = 10_000

export function planOf(seed: number, intents: number): Plan {
  const random = randomOf('plan', seed)
  const faultRate = 0.01 + 0.09 * random.next()
  const fates = fatesOf(random)
  return {
    seed,
    intents,
    agents: Math.min(AGENTS, Math.ceil(intents / 4)),
    faultRate,
    urls: random.integer(1, 2),
    isSequencer: random.chance(0.5),
    hasZeroHash: random.chance(0.5),
    events: eventsOf(random, seed, intents),
    fateOf(content, ordinal) {
      const own = randomOf('fate', seed, content, ordinal)
      if (!own.chance(faultRate)) return { is: 'forward' }
      const is = own.pick(fates)
      if (is === 'late') return { is, ms: own.integer(20, 1_500) }
      // Around the time for which the service waits for an answer.
      return is === 'hang' ? { is, ms: own.integer(3_000, 6_000) } : { is }
    },
    liesAbout: (content, ordinal) => randomOf('lie', seed, content, ordinal).chance(faultRate / 2),
  }
}

/** Each seed is rich in a few kinds of faults: a mixture of everything would look the same every time. */
function fatesOf(random: Random) {
  const rich = () =>
    random.pick(['drop', 'cut', 'busy', 'broken', 'limited', 'reset', 'twice', 'overtaken', 'late'] as const)
  const always = [
    'drop',
    'cut',
    'cut',
    'reset',
    'busy',
    'broken',
    'limited',
    'twice',
    'overtaken',
    'late',
    'hang',
  ] as const
  return [...always, ...[rich(), rich()].flatMap(is => [is, is, is, is])]
}

function eventsOf(random: Random, seed: number, intents: number): Event[] {
  // Consecutive seeds begin with different kinds, so that a few of them meet all.
  const rest = eventKinds.filter((_, index) => index !== seed % eventKinds.length)
  const kinds = [eventKinds[seed % eventKinds.length] ?? 'kill']
  const count = random.integer(3, 6)
  while (kinds.length < count) {
    const kind = random.pick(rest)
    // A key that others use more than once is taken out of service, as it must be: one foreign transaction is the most. One
    // at a nonce whose block was lost gives positions other ids than were told, which nobody can help (docs/decisions.md).
    const excluded = kind === 'foreign-transaction' ? ['reorg', kind] : kind === 'reorg' ? ['foreign-transaction'] : []
    if (!kinds.some(drawn => excluded.includes(drawn))) kinds.push(kind)
  }
  const order: typeof kinds = []
  while (kinds.length > 0) order.push(...kinds.splice(random.integer(0, kinds.length - 1), 1))
  const spacing = (0.75 * intents) / order.length
  return order.map((is, index): Event => {
    const after = Math.round(0.12 * intents + spacing * (index + random.next()))
    if (is === 'reorg') return { after, is, depth: random.integer(1, 3) }
    if (is === 'standstill')
      return { after, is, ms: random.chance(0.25) ? LONG_STANDSTILL_MS : random.integer(800, 2_500) }
    if (is === 'empty-account') return { after, is, ms: random.integer(500, 2_000) }
    return { after, is }
  })
}
