import { clientAddressOf } from './client-address.ts'
import type { RateLimitName, RateLimitQuotas } from './config.ts'
import { refuse } from './errors/refuse.ts'

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

/** What a client has used of one limit. `quota` is per window, `resetSeconds` the rest of the window. */
export type RateLimitCount = {
  name: RateLimitName
  quota: number
  remaining: number
  resetSeconds: number
  isExhausted: boolean
}

/** The limits of one client. Each function counts a request; undefined if there is no such limit. */
export type ClientLimits = {
  /** Counts a request of the client's address. */
  count(name: RateLimitName): Promise<RateLimitCount | undefined>
  /** Counts a call in an MCP session. */
  countInSession(session: string): Promise<RateLimitCount | undefined>
  /** Counts a message that a signer has signed, whatever its address. Throws RATE_LIMITED. */
  countSigner(signer: string): Promise<void>
  /** Raises the limits of the client's address: an account of a registered agent has signed from there. */
  raise(signer: string): void
}

export type RateLimits = ReturnType<typeof createRateLimits>

const WINDOW_SECONDS = 60
/** The limits that a verified signature raises: many agents can share one address. */
const RAISED: readonly RateLimitName[] = ['reads', 'quotes', 'submissions', 'streams']
/** Each account whose signature was verified lately adds one quota to those of its address, up to this many. */
const MAX_RAISES = 9
const SIGNER_MEMORY_MS = 600_000
const MAX_KEYS = 50_000
const MAX_ADDRESSES_WITH_SIGNERS = 10_000

/**
 * Creates the rate limits of a deployment. An isolate counts exactly what it serves, against the quotas of the variables; the
 * bindings count what all isolates of a location serve, against the limits of wrangler.toml.
 */
export function createRateLimits(quotas: RateLimitQuotas, bindings: RateLimiters = {}) {
  const windows = new Map<string, { used: number; endsAt: number }>()
  /** The accounts whose signatures were verified, by address, with the time. */
  const signers = new Map<string, Map<string, number>>()

  function windowOf(key: string, now: number) {
    const known = windows.get(key)
    if (known && known.endsAt > now) return known
    const fresh = { used: 0, endsAt: now + WINDOW_SECONDS * 1_000 }
    windows.delete(key)
    windows.set(key, fresh)
    evictOldest(windows, MAX_KEYS)
    return fresh
  }

  async function count(name: RateLimitName, key: string, shares: number): Promise<RateLimitCount | undefined> {
    if (quotas[name] === 0) return undefined
    const now = Date.now()
    const quota = quotas[name] * shares
    const window = windowOf(`${name} ${key}`, now)
    // Counted before the binding responds, because requests arrive in parallel.
    const isOver = window.used >= quota
    if (!isOver) window.used++
    const remaining = quota - window.used
    const isExhausted = isOver || !(await isWithinBinding(name, key, shares))
    return {
      name,
      quota,
      remaining: isExhausted ? 0 : remaining,
      resetSeconds: Math.max(1, Math.ceil((window.endsAt - now) / 1_000)),
      isExhausted,
    }
  }

  /** A binding has one limit for every key, so each further share is a key of its own. */
  async function isWithinBinding(name: RateLimitName, key: string, shares: number): Promise<boolean> {
    const binding = bindings[rateLimitBindings[name]]
    if (binding === undefined) return true
    for (let share = 0; share < shares; share++) {
      const { success } = await binding.limit({ key: share === 0 ? key : `${key} ${share}` })
      if (success) return true
    }
    return false
  }

  function sharesOf(address: string): number {
    const since = Date.now() - SIGNER_MEMORY_MS
    const recent = [...(signers.get(address)?.values() ?? [])].filter(time => time > since)
    return 1 + Math.min(recent.length, MAX_RAISES)
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
      return {
        count: name => count(name, address, RAISED.includes(name) ? sharesOf(address) : 1),
        countInSession: session => count('mcpSession', session, 1),
        async countSigner(signer) {
          const counted = await count('signer', signer, 1)
          if (counted?.isExhausted) throw rateLimited(counted)
        },
        raise: signer => raise(address, signer),
      }
    },
  }
}

/** Returns the refusal RATE_LIMITED. */
export const rateLimited = ({ name, quota, resetSeconds }: RateLimitCount) =>
  refuse('RATE_LIMITED', { limit: name, requests: quota, seconds: WINDOW_SECONDS }, { retryAfterSeconds: resetSeconds })

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
