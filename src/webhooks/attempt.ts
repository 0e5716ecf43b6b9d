import { checkHost } from './resolve-host.ts'
import { parseRetryAfter } from './retry-schedule.ts'
import { signDelivery } from './sign-delivery.ts'
import { checkTarget, hostOf, isAddress, type TargetRules } from './target.ts'

/** How one attempt ended. `problem` says why it failed, for the owner of the webhook. */
export type AttemptOutcome =
  | { kind: 'delivered'; status: number }
  | { kind: 'gone' }
  | { kind: 'failed'; status?: number; problem: string; retryAfterMs: number }

/** The rules for targets, and the resolver that finds their addresses. */
export type DeliveryRules = TargetRules & { resolverUrl: string }

export const ATTEMPT_TIMEOUT_MS = 10_000

/**
 * Posts a message once. Every attempt checks the target again: the URL against the rules, and all addresses that its name has
 * now. Only a 2xx status is a success; redirects are not followed and the response's body is not read.
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
