import type { MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import { bearerOf, type Call, requestIdOf } from '../call.ts'
import type { CacheableResponse } from '../chain/read-cache.ts'
import type { Context } from '../context.ts'
import { annotateSpan } from '../metrics/active-span.ts'
import { count, observe } from '../metrics/recorder.ts'
import { operations, rehearsalOperations } from '../operations/index.ts'
import type { Operation } from '../operations/operation.ts'
import { paymentOf } from './payment-headers.ts'

/** What is known about a request. Middleware and handlers share it as hono's variables, and share nothing else. */
type RequestState = {
  requestId: string
  /** The operation that the request is for; undefined for pages, documents and unknown paths. */
  operation: Operation | undefined
  call: Call
  /** Set by a handler whose response is the JSON of an output in the read cache. */
  cacheable?: { output: CacheableResponse; json: string }
}
export type AppEnv = { Variables: RequestState }

const operationOfRoute = new Map<string, Operation>(
  [...(operations as readonly Operation[]), ...rehearsalOperations].map(operation => [
    `${operation.method.toUpperCase()} ${operation.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    operation,
  ]),
)

/** Creates the state of a request, and measures and annotates the request with it. */
export const withRequestState =
  ({ rateLimits }: Pick<Context, 'rateLimits'>): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const startedAt = performance.now()
    const { headers } = c.req.raw
    const requestId = requestIdOf(headers)
    const operation = matchedRoutes(c)
      .map(({ method, path }) => operationOfRoute.get(`${method} ${path}`))
      .find(matched => matched !== undefined)
    c.set('requestId', requestId)
    c.set('operation', operation)
    c.set('call', {
      client: rateLimits.ofClient(headers),
      bearer: bearerOf(headers.get('Authorization')),
      payment: paymentOf(headers),
    })
    await next()
    c.res.headers.set('X-Request-Id', requestId)
    annotateSpan(() => ({ operation: operation?.id ?? 'none', requestId }))
    recordRequest(operation?.id, c.res.status, startedAt)
  }

/** Counts a request and records how long its response took since `startedAt` (`performance.now()`). */
export function recordRequest(operation = 'none', status: number, startedAt: number): void {
  observe('ats_request_duration_seconds', { operation, surface: 'http' }, (performance.now() - startedAt) / 1_000)
  count('ats_requests', { operation, surface: 'http', status: `${Math.floor(status / 100)}xx` })
}
