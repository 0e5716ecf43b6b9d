import type { Context } from '../context.ts'
import type { CacheableResponse } from '../read-cache.ts'
import { negotiatedFormats } from './content-negotiation.ts'
import { requestIdOf } from './request-id.ts'
import { markOperation, operationIdOf } from './request-metrics.ts'

type Serve = (request: Request) => Response | Promise<Response>
type CachedResponse = { output: CacheableResponse; operationId: string; json: string; headers: Headers }

/** What a response says to its own client only. */
const PERSONAL_HEADERS = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']
const MAX_ENTRIES = 1_000

// The output behind a response, for requests that were served from the read cache.
const outputs = new WeakMap<Request, CacheableResponse>()
const serialized = new WeakMap<CacheableResponse, string>()

/** Returns the JSON of an output, serialized once per object. */
export function jsonOf(output: CacheableResponse): string {
  const json = serialized.get(output) ?? JSON.stringify(output)
  serialized.set(output, json)
  return json
}

/** Marks the response to a request as cacheable: it is the JSON of an output in the read cache. */
export function markCacheable(request: Request, output: CacheableResponse): void {
  outputs.set(request, output)
}

/**
 * Wraps an app with a cache of whole responses. A cached response is reused with a fresh request id for as long as the
 * read cache holds its output, without routing, validating or serializing again.
 */
export function withResponseCache(serve: Serve, contextOf: () => Context): Serve {
  const cache = new Map<string, CachedResponse>()

  async function serveAndStore(request: Request, key: string): Promise<Response> {
    const response = await serve(request)
    const output = outputs.get(request)
    if (output === undefined || response.status !== 200) return response
    const headers = new Headers(response.headers)
    for (const name of PERSONAL_HEADERS) headers.delete(name)
    cache.delete(key)
    cache.set(key, { output, operationId: operationIdOf(request), json: jsonOf(output), headers })
    const [oldest] = cache.keys()
    if (cache.size > MAX_ENTRIES && oldest !== undefined) cache.delete(oldest)
    return response
  }

  return request => {
    if (request.method !== 'GET' || request.headers.has('If-None-Match')) return serve(request)
    const key = `${negotiatedFormats(request.headers.get('Accept') ?? undefined)} ${request.url}`
    const cached = cache.get(key)
    if (cached === undefined || !contextOf().readCache.isFresh(cached.output)) return serveAndStore(request, key)
    markOperation(request, cached.operationId)
    const response = new Response(cached.json, { headers: cached.headers })
    response.headers.set('X-Request-Id', requestIdOf(request))
    return response
  }
}
