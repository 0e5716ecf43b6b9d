import { checkHost, checkTarget, hostOf, isAddress, type TargetRules } from './target.ts'

/** How one attempt ended. `problem` says why it failed, for the owner of the webhook. */
export type AttemptOutcome =
  | { kind: 'delivered'; status: number }
  | { kind: 'gone' }
  | { kind: 'failed'; status?: number; problem: string; retryAfterMs: number }

/** The rules for targets, and the resolver that finds their addresses. */
export type DeliveryRules = TargetRules & { resolverUrl: string }

const ATTEMPT_TIMEOUT_MS = 10_000

/**
 * Posts a message once. Every attempt checks the target again: the URL against the rules, and all addresses that its
 * name has now. Only a 2xx status is a success; redirects are not followed and the response's body is not read.
 */
export async function attempt(
  { url, secrets }: { url: string; secrets: readonly string[] },
  { id, body }: { id: string; body: string },
  rules: DeliveryRules,
  { now, timeoutMs = ATTEMPT_TIMEOUT_MS }: { now: number; timeoutMs?: number },
): Promise<AttemptOutcome> {
  const problem = await findProblem(url, rules)
  if (problem !== undefined) return failed(problem)
  const timestamp = Math.floor(now / 1_000)
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal,
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'agent-trading-service-webhooks/1',
        'webhook-id': id,
        'webhook-timestamp': `${timestamp}`,
        'webhook-signature': await signDelivery(secrets, { id, timestamp, body }),
      },
    })
    // Not awaited: a receiver that never ends its body must not hold up the next event.
    response.body?.cancel().catch(() => {})
    return outcomeOf(response, now)
  } catch {
    return failed(signal.aborted ? `no response within ${timeoutMs / 1_000} seconds` : 'the connection failed')
  }
}

/** Returns why a target may not be called now; undefined if it may. */
async function findProblem(url: string, rules: DeliveryRules): Promise<string | undefined> {
  const target = checkTarget(url, rules)
  if (target.kind === 'refused') return `the URL is refused: ${target.problem}`
  const check = await checkTargetHost(target.url, rules)
  if (check.kind === 'unknown') return "the resolver did not return the host's addresses"
  return check.kind === 'refused' ? check.problem : undefined
}

/** Checks the addresses that the host of an accepted URL has now. */
export const checkTargetHost = async (url: URL, { allowsLocalTargets, resolverUrl }: DeliveryRules) =>
  allowsLocalTargets || isAddress(hostOf(url)) ? ({ kind: 'public' } as const) : checkHost(hostOf(url), resolverUrl)

function outcomeOf({ status, headers }: Response, now: number): AttemptOutcome {
  if (status >= 200 && status < 300) return { kind: 'delivered', status }
  if (status === 410) return { kind: 'gone' }
  const isRedirect = status >= 300 && status < 400
  return {
    ...failed(`the response has status ${status}${isRedirect ? '; redirects are not followed' : ''}`),
    status,
    retryAfterMs: parseRetryAfter(headers.get('retry-after'), now),
  }
}

const failed = (problem: string) => ({ kind: 'failed', problem, retryAfterMs: 0 }) as const

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** Returns a new signing secret as Standard Webhooks writes it: `whsec_` and 32 random bytes in base64. */
export const createSecret = (): string => PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))

/**
 * Returns the header `webhook-signature`: for each secret `v1,` and the HMAC-SHA256 of `<id>.<timestamp>.<body>` in
 * base64, separated by spaces (Standard Webhooks 1.0.0). `timestamp` is in Unix seconds.
 */
export async function signDelivery(
  secrets: readonly string[],
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): Promise<string> {
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const signatures = await Promise.all(
    secrets.map(async secret => {
      const bytes = Uint8Array.from(atob(secret.slice(PREFIX.length)), character => character.charCodeAt(0))
      const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
      return `v1,${toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, content)))}`
    }),
  )
  return signatures.join(' ')
}

const toBase64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))

const SECOND_MS = 1_000
const HOUR_MS = 3_600 * SECOND_MS

/** How long an event is retried before its webhook is disabled. */
export const MAX_RETRY_MS = 48 * HOUR_MS
const FIRST_CEILING_MS = 5 * SECOND_MS
/** No wait is longer, so a receiver that is back gets its events within an hour. */
export const MAX_RETRY_DELAY_MS = HOUR_MS
const MIN_RETRY_DELAY_MS = SECOND_MS

/**
 * Returns how long to wait after a number of failures of one event: exponential backoff with full jitter, a random part
 * (`random`, from 0 to 1) of a ceiling that doubles from 5 seconds to an hour. The receiver's Retry-After is a lower
 * bound, up to the hour.
 */
export function retryDelayMs(failures: number, random: number, retryAfterMs = 0): number {
  const ceiling = Math.min(FIRST_CEILING_MS * 2 ** (failures - 1), MAX_RETRY_DELAY_MS)
  const delay = Math.max(Math.round(ceiling * random), MIN_RETRY_DELAY_MS)
  return Math.min(Math.max(delay, retryAfterMs), MAX_RETRY_DELAY_MS)
}

/** Parses Retry-After: seconds, or an HTTP date. Returns 0 if the header is absent or malformed. */
export function parseRetryAfter(header: string | null, now: number): number {
  if (header === null) return 0
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * SECOND_MS : Date.parse(header) - now
  return Number.isFinite(ms) && ms > 0 ? ms : 0
}
