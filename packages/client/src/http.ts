import { type AgentTradingError, errorOfResponse, NetworkError } from './errors.ts'

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type HttpOptions = {
  baseUrl: string
  fetch?: Fetch | undefined
  /** How long one request may take, in milliseconds. */
  requestTimeoutMs: number
  /** How long a call retries in all, in milliseconds. */
  retryBudgetMs: number
}

export type QueryValue = string | number | bigint | boolean | undefined
type Request = { method?: string; body?: unknown; headers?: Record<string, string> }

/** Sends requests to one service. */
export type Http = ReturnType<typeof createHttp>

const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 5_000

export function createHttp({ baseUrl, fetch: given, requestTimeoutMs, retryBudgetMs }: HttpOptions) {
  const origin = baseUrl.replace(/\/+$/, '')
  const send: Fetch = given ?? ((url, init) => fetch(url, init))
  /**
   * The newest block that a response about an agent has shown. Another server of the service must not return older
   * state.
   */
  let seenBlock = 0n

  /**
   * Sends one request, without retries. Returns the parsed body of a success; throws an `AgentTradingError` otherwise.
   */
  async function once<T>(path: string, { method = 'GET', body, headers }: Request = {}): Promise<T> {
    const url = origin + path
    const signal = AbortSignal.timeout(requestTimeoutMs)
    let response: Response
    let text: string
    try {
      response = await send(url, {
        method,
        // A redirect would carry a signed body to another service.
        redirect: 'manual',
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(seenBlock > 0n && isOfAgents(path) && { 'min-block': `${seenBlock}` }),
          ...headers,
        },
        signal,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      text = await response.text()
    } catch (cause) {
      const why = signal.aborted ? `did not respond within ${requestTimeoutMs} ms` : 'could not be reached'
      throw networkError(url, `${method} ${url}: the service ${why}.`, cause)
    }
    if (response.status < 200 || (response.status >= 300 && response.status < 400))
      throw networkError(url, `${method} ${url}: the service redirects, which the client does not follow.`, undefined)
    const parsed = parseJson(text)
    if (!response.ok) {
      const error = errorOfResponse(response.status, response.headers, parsed)
      if (error.code !== 'MIN_BLOCK_AHEAD' || seenBlock === 0n) throw error
      // The chain was restarted, or lost blocks. The service did nothing else with the request.
      seenBlock = 0n
      return once(path, { method, body, ...(headers && { headers }) })
    }
    const shown = response.headers.get('x-as-of-block') ?? ''
    if (isOfAgents(path) && /^\d+$/.test(shown) && BigInt(shown) > seenBlock) seenBlock = BigInt(shown)
    // A body that was cut off says nothing about what was done.
    if (parsed === undefined) throw networkError(url, `${method} ${url}: the response is not JSON.`, undefined)
    return parsed as T
  }

  /** Reads, and retries what may succeed later until the budget is spent. */
  async function get<T>(path: string): Promise<T> {
    const retry = createRetry(retryBudgetMs)
    for (;;)
      try {
        return await once<T>(path)
      } catch (error) {
        const { retryable, code } = error as AgentTradingError
        // A 503 of /health/ready has the requested body: it says what is not ready.
        if (!retryable || code === 'NOT_READY' || !(await retry.wait(error))) throw error
      }
  }

  return { origin, send, once, get, retryBudgetMs }
}

const isOfAgents = (path: string) => /^\/agents(\/|$)/.test(path)

const networkError = (url: string, message: string, cause: unknown) =>
  new NetworkError('NETWORK_ERROR', message, {
    remedy: 'Check the base URL and the connection, then try again.',
    retryable: true,
    details: { url },
    cause,
  })

/** Waits between attempts: as long as the service says, or longer each time, within a budget. */
export function createRetry(budgetMs: number) {
  const until = Date.now() + budgetMs
  let backoff = FIRST_BACKOFF_MS
  return {
    /** Waits before the next attempt. Returns false, without waiting, if that would exceed the budget. */
    async wait(error: unknown): Promise<boolean> {
      const seconds = (error as Partial<AgentTradingError>).retryAfterSeconds
      const ms = seconds === undefined ? backoff * (0.5 + Math.random() / 2) : seconds * 1_000
      backoff = Math.min(2 * backoff, MAX_BACKOFF_MS)
      if (Date.now() + ms >= until) return false
      await new Promise(resolve => setTimeout(resolve, ms))
      return true
    },
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns a path with its parameters filled in and the rest of the values as its query. */
export function fillPath(template: string, values: Record<string, QueryValue>): string {
  const query = new URLSearchParams()
  let path = template
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(String(value)))
    else query.set(name, String(value))
  }
  const missing = /\{(\w+)\}/.exec(path)
  if (missing) throw new TypeError(`${missing[1]} is missing for ${template}`)
  return query.size === 0 ? path : `${path}?${query}`
}
