import { clientAddressOf } from './client-address.ts'
import { sleep } from './concurrency.ts'
import type { RateLimitConfig, RateLimitName } from './config/config.ts'
import { refuse } from './errors/refuse.ts'
import { createParallelCap, type Leave } from './parallel-cap.ts'

/** The rate-limiting bindings of wrangler.toml, which count across the isolates of a location. */
export const rateLimitBindings = {
  reads: 'READ_RATE_LIMIT',
  quotes: 'QUOTE_RATE_LIMIT',
  submissions: 'SUBMISSION_RATE_LIMIT',
  registrations: 'REGISTRATION_RATE_LIMIT',
  streams: 'STREAM_RATE_LIMIT',
  mcpSessions: 'MCP_SESSION_RATE_LIMIT',
  signer: 'SIGNER_RATE_LIMIT',
  mcpSession: 'MCP_CALL_RATE_LIMIT',
} as const satisfies Record<RateLimitName, string>

type Binding = { limit(options: { key: string }): Promise<{ success: boolean }> }
/** The bindings by name. Without them the isolate counts alone. */
export type RateLimiters = Partial<Record<(typeof rateLimitBindings)[RateLimitName], Binding>>

/** A client's usage of one limit. `quota` is per window; after `resetSeconds` it has more again. */
export type RateLimitCount = {
  name: RateLimitName
  quota: number
  remaining: number
  resetSeconds: number
  /** The limit that the request exceeded, as a number of requests and seconds; undefined if it exceeded none. */
  exceeded?: { requests: number; seconds: number }
}

/** The limits of one client, for one request. Counts are undefined for limits that are not set. */
export type ClientLimits = {
  /** When the request arrived, in epoch milliseconds, plus the time that its client took to send the body. */
  arrivedAt: number
  /** Counts a request of the client's address. `inIsolate` skips the binding, which costs more than a refusal. */
  count(name: RateLimitName, options?: { inIsolate: boolean }): Promise<RateLimitCount | undefined>
  /**
   * Counts an MCP message of the client's address, then in its session, if it has one. Returns what was counted; if a limit
   * is exceeded, it is the last.
   */
  countMessage(name: RateLimitName, session: string | undefined): Promise<RateLimitCount[]>
  /** Counts a message by its signer, whatever the client's address. Throws RATE_LIMITED. */
  countSigner(signer: string): Promise<void>
  /** Raises the limits of the client's address, after an account of a registered agent has signed a message from it. */
  raise(signer: string): void
  /**
   * Waits for the request's turn. Addresses of verified signers never wait, and while these send requests, fewer requests of
   * all others are worked on. Throws RATE_LIMITED after a second, unless the request `getsOut` (reduces a position or stops an
   * agent).
   */
  enter(options?: { getsOut?: boolean; kind?: TurnKind }): Promise<void>
  /**
   * Delays a refusal while addresses of verified signers send requests, so that a client which ignores refusals causes fewer
   * of them.
   */
  delayRefusal(): Promise<void>
  /** Ends the turn. A request that only waits for the chain ends its turn early. */
  leave(): void
}

/** Batches of MCP messages have a cap of their own, because their calls take turns too; so do streams, which cost most. */
type TurnKind = 'request' | 'batch' | 'stream'

export type RateLimits = ReturnType<typeof createRateLimits>

const WINDOW_SECONDS = 60
/** The limits that a verified signature raises: many agents can share one address. */
const RAISED: readonly RateLimitName[] = ['reads', 'quotes', 'submissions', 'streams']
/** Each account whose signature was recently verified adds one quota to its address, up to this many. */
const MAX_RAISES = 9
const SIGNER_MEMORY_MS = 600_000
const MAX_KEYS = 50_000
const MAX_ADDRESSES_WITH_SIGNERS = 10_000
/** The smallest burst, so that small quotas are not spread. */
const MIN_BURST = 60
/** By how much the slots are divided for a second after a request from the address of a verified signer. */
const SIGNERS_DIVISOR = 4
const SIGNERS_PRIORITY_MS = 1_000
/** How many batches of MCP messages are worked on at a time. */
const MAX_PARALLEL_BATCHES = 2
/** For how long a refusal waits, and how many wait at a time: each holds an open connection. */
const REFUSAL_DELAY_MS = 250
const MAX_DELAYED_REFUSALS = 500
/** Short, because it is part of the request's time limit. */
const MAX_WAIT_SECONDS = 1

/** One of the limits that a request counts against. Each of its shares allows one quota. */
type Limit = { name: RateLimitName; key: string; shares: number }
/** `level` is how much of the burst is used; it drains at the rate of the quota. */
type Usage = { used: number; endsAt: number; level: number; drainedAt: number }

/**
 * Creates the rate limits of a deployment. An isolate counts the requests it serves against the quotas of the
 * variables, and spreads each quota over its minute. The bindings count the requests of all isolates of a location
 * against the limits of wrangler.toml.
 */
export function createRateLimits({ quotas, burstSeconds, maxParallel }: RateLimitConfig, bindings: RateLimiters = {}) {
  const usages = new Map<string, Usage>()
  /** The accounts whose signatures were verified, by address, with the time of verification. */
  const signers = new Map<string, Map<string, number>>()
  let delayedRefusals = 0
  let lastSignerAt = Number.NEGATIVE_INFINITY
  const areSignersActive = () => Date.now() - lastSignerAt < SIGNERS_PRIORITY_MS
  const enterCap = {
    request: createParallelCap(() => (areSignersActive() ? Math.ceil(maxParallel / SIGNERS_DIVISOR) : maxParallel)),
    batch: createParallelCap(() => MAX_PARALLEL_BATCHES),
    stream: createParallelCap(() => (areSignersActive() ? 1 : maxParallel)),
  } satisfies Record<TurnKind, unknown>

  function usageOf(key: string, now: number): Usage {
    const known = usages.get(key)
    if (known && known.endsAt > now) return known
    const fresh = { level: 0, drainedAt: now, ...known, used: 0, endsAt: now + WINDOW_SECONDS * 1_000 }
    usages.delete(key)
    usages.set(key, fresh)
    evictOldest(usages, MAX_KEYS)
    return fresh
  }

  function burstOf(quota: number): number {
    const burst = burstSeconds === 0 ? quota : Math.ceil((quota * burstSeconds) / WINDOW_SECONDS)
    return Math.min(quota, Math.max(burst, MIN_BURST))
  }

  /** Counts in this isolate, which costs little. */
  function countHere({ name, key, shares }: Limit): RateLimitCount | undefined {
    if (quotas[name] === 0) return undefined
    const now = Date.now()
    const quota = quotas[name] * shares
    const perSecond = quota / WINDOW_SECONDS
    const burst = burstOf(quota)
    const usage = usageOf(`${name} ${key}`, now)
    usage.level = Math.max(0, usage.level - ((now - usage.drainedAt) / 1_000) * perSecond)
    usage.drainedAt = now
    const secondsLeft = Math.max(1, Math.ceil((usage.endsAt - now) / 1_000))
    const over = (resetSeconds: number, requests: number, seconds: number): RateLimitCount => ({
      name,
      quota,
      remaining: 0,
      resetSeconds,
      exceeded: { requests, seconds },
    })
    if (usage.used >= quota) return over(secondsLeft, quota, WINDOW_SECONDS)
    if (burst < quota && usage.level + 1 > burst)
      return over(Math.ceil((usage.level + 1 - burst) / perSecond), burst, Math.ceil(burst / perSecond))
    // Counted before the binding responds, because requests arrive in parallel.
    usage.used++
    usage.level++
    return { name, quota, remaining: quota - usage.used, resetSeconds: secondsLeft }
  }

  /**
   * Counts a request against limits until one is exceeded, first in this isolate and then, unless `inIsolate`, in the
   * bindings: they cost more than a refusal.
   */
  async function count(limits: readonly Limit[], { inIsolate } = { inIsolate: false }): Promise<RateLimitCount[]> {
    const counted: { limit: Limit; count: RateLimitCount }[] = []
    for (const limit of limits) {
      const count = countHere(limit)
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

  /** A binding has the same limit for every key, so each further share uses another key. */
  async function isWithinBinding({ name, key, shares }: Limit): Promise<boolean> {
    const binding = bindings[rateLimitBindings[name]]
    if (binding === undefined) return true
    for (let share = 0; share < shares; share++) {
      const { success } = await binding.limit({ key: share === 0 ? key : `${key} ${share}` })
      if (success) return true
    }
    return false
  }

  function sharesOf(address: string): number {
    const known = signers.get(address)
    if (known === undefined) return 1
    const since = Date.now() - SIGNER_MEMORY_MS
    return 1 + Math.min([...known.values()].filter(time => time > since).length, MAX_RAISES)
  }

  function raise(address: string, signer: string) {
    const known = signers.get(address) ?? new Map<string, number>()
    known.delete(signer)
    known.set(signer, Date.now())
    evictOldest(known, MAX_RAISES)
    signers.delete(address)
    signers.set(address, known)
    evictOldest(signers, MAX_ADDRESSES_WITH_SIGNERS)
  }

  return {
    /**
     * Returns the limits of the client that sent a request; undefined without a client address, which only Cloudflare and its
     * local runtime set.
     */
    ofClient(headers: Headers): ClientLimits | undefined {
      if (!headers.has('cf-connecting-ip')) return undefined
      const address = clientAddressOf(headers)
      const limitOf = (name: RateLimitName): Limit => ({
        name,
        key: address,
        shares: RAISED.includes(name) ? sharesOf(address) : 1,
      })
      let leave: Leave | undefined
      return {
        arrivedAt: Date.now(),
        async count(name, options) {
          const [counted] = await count([limitOf(name)], options)
          return counted
        },
        // The address first: it may send any number of session ids.
        countMessage: (name, session) =>
          count([
            limitOf(name),
            ...(session === undefined ? [] : [{ name: 'mcpSession', key: session, shares: 1 } as const]),
          ]),
        async countSigner(signer) {
          const [counted] = await count([{ name: 'signer', key: signer, shares: 1 }])
          if (counted?.exceeded) throw rateLimited(counted)
        },
        raise: signer => raise(address, signer),
        async enter({ getsOut = false, kind = 'request' } = {}) {
          if (maxParallel === 0) return
          if (sharesOf(address) > 1) {
            lastSignerAt = Date.now()
            return
          }
          leave = await enterCap[kind](address, MAX_WAIT_SECONDS * 1_000)
          if (leave === undefined && !getsOut) throw tooManyInParallel(Math.ceil(maxParallel / 2))
        },
        async delayRefusal() {
          if (delayedRefusals >= MAX_DELAYED_REFUSALS || !areSignersActive() || sharesOf(address) > 1) return
          delayedRefusals++
          await sleep(REFUSAL_DELAY_MS)
          delayedRefusals--
        },
        leave: () => leave?.(),
      }
    },
  }
}

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
