import { clientAddressOf } from './client-address.ts'

/** What is limited for each client address, and how many requests it may make in a window. */
export const rateLimits = {
  reads: { binding: 'READ_RATE_LIMIT', quota: 6_000, windowSeconds: 60 },
  quotes: { binding: 'QUOTE_RATE_LIMIT', quota: 1_200, windowSeconds: 60 },
  submissions: { binding: 'SUBMISSION_RATE_LIMIT', quota: 1_200, windowSeconds: 60 },
  registrations: { binding: 'REGISTRATION_RATE_LIMIT', quota: 120, windowSeconds: 60 },
} as const satisfies Record<string, RateLimitPolicy>
export type RateLimitName = keyof typeof rateLimits

type RateLimitPolicy = { binding: string; quota: number; windowSeconds: number }
type RateLimiter = { limit(options: { key: string }): Promise<{ success: boolean }> }
/** The rate-limiting bindings of wrangler.toml by name. Nothing is limited without them. */
export type RateLimiters = Partial<Record<(typeof rateLimits)[RateLimitName]['binding'], RateLimiter>>

/**
 * Counts a request of a client. Returns whether the client has a limit at all, and whether it is exhausted. Requests without
 * a client address, which only Cloudflare and its local runtime set, have no limit.
 */
export async function countRequest(
  limiters: RateLimiters,
  name: RateLimitName,
  headers: Headers,
): Promise<'unlimited' | 'passed' | 'exhausted'> {
  const limiter = limiters[rateLimits[name].binding]
  if (limiter === undefined || !headers.has('cf-connecting-ip')) return 'unlimited'
  const { success } = await limiter.limit({ key: clientAddressOf(headers) })
  return success ? 'passed' : 'exhausted'
}

/** Returns the fields of draft-ietf-httpapi-ratelimit-headers. The binding does not tell how many requests are left. */
export function rateLimitFields(name: RateLimitName, isExhausted: boolean): Record<string, string> {
  const { quota, windowSeconds } = rateLimits[name]
  return {
    'RateLimit-Policy': `"${name}";q=${quota};w=${windowSeconds}`,
    ...(isExhausted && { RateLimit: `"${name}";r=0;t=${windowSeconds}` }),
  }
}
