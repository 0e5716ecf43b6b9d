import { sleep } from '../concurrency.ts'
import type { RateLimitConfig, RateLimitName } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { clientNetworksOf, NETWORK_SHARES } from '../requests/client-address.ts'
import { createParallelCap, type Leave } from './parallel-cap.ts'
import { createRaisedLimits } from './raised-limits.ts'

/**
 * The rate-limiting bindings of wrangler.toml, which count across the isolates of a location. What a request may take back is
 * counted in the isolate alone, and so are searches, which cost nothing but its CPU.
 */
export const rateLimitBindings = {
  reads: 'READ_RATE_LIMIT',
  quotes: 'QUOTE_RATE_LIMIT',
  submissions: 'SUBMISSION_RATE_LIMIT',
  registrations: 'REGISTRATION_RATE_LIMIT',
  streams: 'STREAM_RATE_LIMIT',
  mcpSessions: 'MCP_SESSION_RATE_LIMIT',
  signer: 'SIGNER_RATE_LIMIT',
  mcpSession: 'MCP_CALL_RATE_LIMIT',
} as const satisfies Partial<Record<RateLimitName, string>>

type Binding = { limit(options: { key: string }): Promise<{ success: boolean }> }
/** The bindings by name. Without them the isolate counts alone. */
export type RateLimiters = Partial<Record<(typeof rateLimitBindings)[keyof typeof rateLimitBindings], Binding>>

/** A client's usage of one limit. `quota` is per window; after `resetSeconds` it has more again. */
export type RateLimitCount = {
  name: RateLimitName
  quota: number
  remaining: number
  resetSeconds: number
  /** The limit that the request exceeded, as a number of requests and seconds; undefined if it exceeded none. */
  exceeded?: { requests: number; seconds: number }
}

/**
 * How a request counts. `inIsolate` skips the bindings, which cost more than a refusal; `weight` is 1 by default. `isSpent`: the
 * work is done, so it counts beyond the limit too, and the requests that follow wait for it.
 */
type CountOptions = { inIsolate?: boolean; weight?: number; isSpent?: boolean }

/** The limits of one client, for one request. Counts are undefined for limits that are not set. */
export type ClientLimits = {
  /** When the request arrived, in epoch milliseconds, plus the time that its client took to send the body. */
  arrivedAt: number
  /** Counts a request of the client's networks. */
  count(name: RateLimitName, options?: CountOptions): Promise<RateLimitCount | undefined>
  /**
   * Counts an MCP message of the client's networks, then in its session, if it has one. Returns what was counted; if a limit
   * is exceeded, it is the last.
   */
  countMessage(name: RateLimitName, session: string | undefined, weight?: number): Promise<RateLimitCount[]>
  /** Takes back the count of a reduction or a stop, once it was sent to the chain and nobody has sent it before. */
  takeBackReduction(): void
  /** Counts a message by its signer, whatever the client's address. Throws RATE_LIMITED. */
  countSigner(signer: string): Promise<void>
  /**
   * Raises the limits of the client's networks, after an account of a registered agent has signed a message of this digest.
   * A digest raises them once.
   */
  raise(signer: string, digest: string): void
  /** Whether a message of this digest has raised limits before, so that its sender may be anyone. */
  isRepeated(digest: string): boolean
  /** Whether the isolate may search for the mistake behind an invalid signature: nobody waits, and the client's limit allows it. */
  maySearch(options?: { isCounted?: boolean }): boolean
  /**
   * Waits for the request's turn. Addresses of verified signers never wait, and while these send requests, fewer requests of
   * all others are worked on. Throws RATE_LIMITED after a second.
   */
  enter(kind?: TurnKind): Promise<void>
  /**
   * Delays a refusal while addresses of verified signers send requests, so that a client which ignores refusals causes fewer
   * of them.
   */
  delayRefusal(): Promise<void>
  /** Ends the turn. A request that only waits for the chain ends its turn early. */
  leave(): void
}

/**
 * Each kind has slots of its own: no other kind delays reductions and stops, the calls of a batch of MCP messages take turns
 * too, no batch keeps others from opening sessions, and streams cost most.
 */
export type TurnKind = 'request' | 'reduction' | 'batch' | 'initialize' | 'stream'

export type RateLimits = ReturnType<typeof createRateLimits>

/** As how many reads a read in an MCP session counts: it also costs a request of the session's object. */
export const SESSION_READS = 2
/**
 * As how many reads a subscription counts, or the end of one, besides the request of the session's object: both write to the hub and
 * look through its subscribers.
 */
export const SUBSCRIPTION_READS = 15

const WINDOW_SECONDS = 60
/** The limits that a verified signature raises: many agents can share one address. */
const RAISED: readonly RateLimitName[] = ['reads', 'quotes', 'submissions', 'reductions', 'streams']
const MAX_KEYS = 50_000
/** The smallest burst, so that small quotas are not spread. */
const MIN_BURST = 60
/** By how much the slots are divided for a second after a request from the address of a verified signer. */
const SIGNERS_DIVISOR = 4
const SIGNERS_PRIORITY_MS = 1_000
/** How many batches of MCP messages are worked on at a time, and how many initialize requests. */
const MAX_PARALLEL_BATCHES = 2
/** A batch may wait for events, or be read slowly: neither costs CPU. */
const MAX_BATCH_TURN_MS = 5_000
/** For how long a refusal waits, and how many wait at a time: each holds an open connection. */
const REFUSAL_DELAY_MS = 250
const MAX_DELAYED_REFUSALS = 500
/** Short, because it is part of the request's time limit. */
const MAX_WAIT_SECONDS = 1

/** One of the limits that a request counts against, of the network at `level`. Each of its shares allows one quota. */
type Limit = { name: RateLimitName; key: string; level: number; shares: number; weight: number }
/** `burst` is how much of the burst is used; it drains at the rate of the quota. */
type Usage = { used: number; endsAt: number; burst: number; drainedAt: number }

/**
 * Creates the rate limits of a deployment. An isolate counts the requests it serves against the quotas of the
 * variables, and spreads each quota over its minute. The bindings count the requests of all isolates of a location
 * against the limits of wrangler.toml.
 */
export function createRateLimits({ quotas, burstSeconds, maxParallel }: RateLimitConfig, bindings: RateLimiters = {}) {
  /** Wide networks are counted apart, so that a client with many narrow ones cannot push out its own count. */
  const usages = NETWORK_SHARES.map(() => new Map<string, Usage>())
  const raised = createRaisedLimits()
  let delayedRefusals = 0
  let lastSignerAt = Number.NEGATIVE_INFINITY
  const areSignersActive = () => Date.now() - lastSignerAt < SIGNERS_PRIORITY_MS
  const caps = {
    request: createParallelCap(() => (areSignersActive() ? Math.ceil(maxParallel / SIGNERS_DIVISOR) : maxParallel)),
    reduction: createParallelCap(() => maxParallel),
    batch: createParallelCap(() => MAX_PARALLEL_BATCHES, MAX_BATCH_TURN_MS),
    initialize: createParallelCap(() => MAX_PARALLEL_BATCHES),
    stream: createParallelCap(() => (areSignersActive() ? 1 : maxParallel)),
  } satisfies Record<TurnKind, unknown>
  const isCrowded = () => Object.values(caps).some(cap => cap.isCrowded())

  function usageOf({ name, key, level }: Limit, now: number): Usage {
    const ofLevel = usages[level] as Map<string, Usage>
    const id = `${name} ${key}`
    const known = ofLevel.get(id)
    if (known && known.endsAt > now) return known
    const fresh = { burst: 0, drainedAt: now, ...known, used: 0, endsAt: now + WINDOW_SECONDS * 1_000 }
    ofLevel.delete(id)
    ofLevel.set(id, fresh)
    evictOldest(ofLevel, MAX_KEYS)
    return fresh
  }

  function burstOf(quota: number): number {
    const burst = burstSeconds === 0 ? quota : Math.ceil((quota * burstSeconds) / WINDOW_SECONDS)
    return Math.min(quota, Math.max(burst, MIN_BURST))
  }

  /** Returns as how many requests one counts: at most as a burst, so that an unused limit has room for it. */
  const weightIn = ({ name, shares, weight }: Limit) => Math.min(weight, burstOf(quotas[name] * shares))

  /** Counts in this isolate, which costs little. */
  function countHere(limit: Limit, isSpent = false): RateLimitCount | undefined {
    const { name, shares } = limit
    if (quotas[name] === 0) return undefined
    const now = Date.now()
    const quota = quotas[name] * shares
    const perSecond = quota / WINDOW_SECONDS
    const burst = burstOf(quota)
    const weight = weightIn(limit)
    const usage = usageOf(limit, now)
    usage.burst = Math.max(0, usage.burst - ((now - usage.drainedAt) / 1_000) * perSecond)
    usage.drainedAt = now
    const secondsLeft = Math.max(1, Math.ceil((usage.endsAt - now) / 1_000))
    const over = (resetSeconds: number, requests: number, seconds: number): RateLimitCount => ({
      name,
      quota,
      remaining: 0,
      resetSeconds,
      exceeded: { requests, seconds },
    })
    if (!isSpent && usage.used + weight > quota) return over(secondsLeft, quota, WINDOW_SECONDS)
    if (!isSpent && burst < quota && usage.burst + weight > burst)
      return over(Math.ceil((usage.burst + weight - burst) / perSecond), burst, Math.ceil(burst / perSecond))
    // Counted before the binding responds, because requests arrive in parallel.
    usage.used += weight
    usage.burst += weight
    return { name, quota, remaining: Math.max(0, quota - usage.used), resetSeconds: secondsLeft }
  }

  /**
   * Counts a request against limits until one is exceeded, first in this isolate and then, unless `inIsolate`, in the
   * bindings: they cost more than a refusal.
   */
  async function count(
    limits: readonly Limit[],
    { inIsolate = false, isSpent = false }: CountOptions = {},
  ): Promise<RateLimitCount[]> {
    const counted: { limit: Limit; count: RateLimitCount }[] = []
    for (const limit of limits) {
      const count = countHere(limit, isSpent)
      if (count) counted.push({ limit, count })
      if (count?.exceeded) break
    }
    const counts = counted.map(({ count }) => count)
    if (inIsolate || counts.at(-1)?.exceeded) return counts
    for (const [index, { limit, count }] of counted.entries())
      if (!(await isWithinBinding(limit))) {
        const exceeded = { requests: count.quota, seconds: WINDOW_SECONDS }
        return [...counts.slice(0, index), { ...count, remaining: 0, exceeded }]
      }
    return counts
  }

  /**
   * A binding counts one request per call, so a heavy request makes as many calls as its weight. It has the same limit for every
   * key, so each further share uses another key.
   */
  async function isWithinBinding(limit: Limit): Promise<boolean> {
    const { name, key, shares } = limit
    const binding = name in rateLimitBindings ? bindings[rateLimitBindings[name as BoundName]] : undefined
    if (binding === undefined) return true
    let share = 0
    for (let counted = 0; counted < weightIn(limit); ) {
      const { success } = await binding.limit({ key: share === 0 ? key : `${key} ${share}` })
      if (success) counted++
      else if (++share === shares) return false
    }
    return true
  }

  return {
    /**
     * Returns the limits of the client that sent a request; undefined without a client address, which only Cloudflare and its
     * local runtime set.
     */
    ofClient(headers: Headers): ClientLimits | undefined {
      if (!headers.has('cf-connecting-ip')) return undefined
      const networks = clientNetworksOf(headers)
      const widest = networks.at(-1) ?? networks[0]
      /** The widest network first: a client may have any number of narrow ones. */
      const limitsOf = (name: RateLimitName, weight = 1): Limit[] =>
        networks
          .map((key, level) => {
            const raises = RAISED.includes(name) ? raised.countOf(key) : 0
            return { name, key, level, shares: (NETWORK_SHARES[level] ?? 1) + raises, weight }
          })
          .reverse()
      const isRaised = () => raised.countOf(networks[0]) > 0
      let leave: Leave | undefined
      let reductionWeight = 1
      return {
        arrivedAt: Date.now(),
        async count(name, { weight = 1, ...options } = {}) {
          if (name === 'reductions') reductionWeight = weight
          const counts = await count(limitsOf(name, weight), options)
          return counts.at(-1)
        },
        // The address first: it may send any number of session ids.
        async countMessage(name, session, weight = 1) {
          const ofSession = { name: 'mcpSession', key: session ?? '', level: 0, shares: 1, weight: 1 } as const
          const isInSession = session !== undefined && name !== 'reductions'
          const ofObject = isInSession && name === 'reads' ? SESSION_READS - 1 : 0
          const counts = await count([...limitsOf(name, weight + ofObject), ...(isInSession ? [ofSession] : [])])
          // Of the networks, only the one with the least left.
          return counts.filter((count, index) => count.exceeded || count.name !== counts[index + 1]?.name)
        },
        takeBackReduction() {
          const now = Date.now()
          for (const limit of limitsOf('reductions')) {
            const usage = usageOf(limit, now)
            usage.used = Math.max(0, usage.used - reductionWeight)
            usage.burst = Math.max(0, usage.burst - reductionWeight)
          }
        },
        async countSigner(signer) {
          const [counted] = await count([{ name: 'signer', key: signer, level: 0, shares: 1, weight: 1 }])
          if (counted?.exceeded) throw rateLimited(counted)
        },
        raise: (signer, digest) => raised.raise(networks, signer, digest),
        isRepeated: digest => raised.knows(digest),
        maySearch: ({ isCounted = false } = {}) =>
          !isCrowded() && (isCounted || limitsOf('signatureSearches').every(limit => !countHere(limit)?.exceeded)),
        async enter(kind = 'request') {
          if (maxParallel === 0) return
          if (isRaised()) {
            lastSignerAt = Date.now()
            return
          }
          leave = await caps[kind].enter(widest, MAX_WAIT_SECONDS * 1_000)
          if (leave === undefined) throw tooManyInParallel(Math.ceil(maxParallel / 2))
        },
        async delayRefusal() {
          if (delayedRefusals >= MAX_DELAYED_REFUSALS || !areSignersActive() || isRaised()) return
          delayedRefusals++
          await sleep(REFUSAL_DELAY_MS)
          delayedRefusals--
        },
        leave: () => leave?.(),
      }
    },
  }
}

type BoundName = keyof typeof rateLimitBindings

/** Returns the refusal RATE_LIMITED of a count that exceeds its limit. */
export const rateLimited = ({ name, quota, resetSeconds, exceeded }: RateLimitCount) =>
  refuse(
    'RATE_LIMITED',
    { limit: name, requests: quota, seconds: WINDOW_SECONDS, ...exceeded },
    { retryAfterSeconds: resetSeconds },
  )

const tooManyInParallel = (requests: number) =>
  refuse('RATE_LIMITED', { limit: 'parallel', requests, seconds: MAX_WAIT_SECONDS }, { retryAfterSeconds: 1 })

/** Returns the fields of draft-ietf-httpapi-ratelimit-headers. */
export function rateLimitFields(counts: readonly RateLimitCount[]): Record<string, string> {
  if (counts.length === 0) return {}
  return {
    'RateLimit-Policy': counts.map(({ name, quota }) => `"${name}";q=${quota};w=${WINDOW_SECONDS}`).join(', '),
    RateLimit: counts
      .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
  }
}

function evictOldest(map: Map<string, unknown>, maximum: number) {
  const [oldest] = map.keys()
  if (map.size > maximum && oldest !== undefined) map.delete(oldest)
}
