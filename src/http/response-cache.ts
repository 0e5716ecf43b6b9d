import type { MiddlewareHandler } from 'hono'
import { requestIdOf } from '../call.ts'
import type { CacheableResponse, ReadCache } from '../chain/read-cache.ts'
import { negotiatedFormats } from './content-negotiation.ts'
import { type AppEnv, recordRequest } from './request-state.ts'

type CachedResponse = { output: CacheableResponse; operationId: string | undefined; json: string; headers: Headers }

/** What a response says to its own client only. */
const PERSONAL_HEADERS = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']
const MAX_ENTRIES = 1_000

export type ResponseCache = ReturnType<typeof createResponseCache>

/** The representation that a GET requests; undefined for requests that need the app. */
const keyOf = ({ method, headers, url }: Request): string | undefined =>
  method === 'GET' && !headers.has('If-None-Match') && !headers.has('Min-Block')
    ? `${negotiatedFormats(headers.get('Accept') ?? undefined)} ${url}`
    : undefined

/**
 * Creates a cache of whole responses in front of the app. A response is reused with a fresh request id for as long as
 * the read cache holds its output, without routing, validating or serializing again; one request renews it in time.
 */
export function createResponseCache(readCache: Pick<ReadCache, 'isFresh' | 'takeRenewal'>) {
  const cache = new Map<string, CachedResponse>()

  /** Returns the cached response to a request. It is counted but not traced. */
  function find(request: Request): Response | undefined {
    const startedAt = performance.now()
    const key = keyOf(request)
    const cached = key === undefined ? undefined : cache.get(key)
    if (cached === undefined || !readCache.isFresh(cached.output) || readCache.takeRenewal(cached.output))
      return undefined
    const response = new Response(cached.json, { headers: cached.headers })
    response.headers.set('X-Request-Id', requestIdOf(request.headers))
    recordRequest(cached.operationId, response.status, startedAt)
    return response
  }

  /** Stores the finished response to a request whose handler marked it as cacheable. */
  const store: MiddlewareHandler<AppEnv> = async (c, next) => {
    await next()
    const { cacheable } = c.var
    const key = keyOf(c.req.raw)
    if (cacheable === undefined || key === undefined || c.res.status !== 200) return
    const headers = new Headers(c.res.headers)
    for (const name of PERSONAL_HEADERS) headers.delete(name)
    cache.delete(key)
    cache.set(key, { output: cacheable.output, operationId: c.var.operation?.id, json: cacheable.json, headers })
    for (const [oldest, { output }] of cache) {
      if (cache.size <= MAX_ENTRIES && readCache.isFresh(output)) break
      cache.delete(oldest)
    }
  }

  return { find, store }
}
