import { createRoute, type OpenAPIHono, type z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { refuse } from '../errors/refuse.ts'
import { invalidRequest } from '../operations/invalid-request.ts'
import { type Operation, rateLimitOf } from '../operations/operation.ts'
import { countRequest, type RateLimiters, rateLimitFields, rateLimits } from '../rate-limits.ts'
import type { AppEnv } from './app-env.ts'
import { eventStreamHandler } from './event-stream-handler.ts'
import { jsonHandler } from './json-handler.ts'
import { openApiRoute } from './openapi-route.ts'

/** Adds the route of an operation. Path, query, headers and body are validated before its handler runs. */
export function addOperationRoute(app: OpenAPIHono<AppEnv>, operation: Operation, limiters: RateLimiters = {}): void {
  const name = rateLimitOf(operation)
  const route = openApiRoute(operation)
  // Checked before the input, because a refusal of the input costs too.
  const limit: MiddlewareHandler<AppEnv> = async (c, next) => {
    const outcome = name === undefined ? 'unlimited' : await countRequest(limiters, name, c.req.raw.headers)
    if (name === undefined || outcome === 'unlimited') return next()
    const setFields = (isExhausted: boolean) => {
      for (const [field, value] of Object.entries(rateLimitFields(name, isExhausted))) c.header(field, value)
    }
    setFields(outcome === 'exhausted')
    if (outcome === 'exhausted')
      throw refuse('RATE_LIMITED', {
        limit: name,
        requests: rateLimits[name].quota,
        seconds: rateLimits[name].windowSeconds,
      })
    return next()
  }
  const handler = operation.kind === 'json' ? jsonHandler(operation) : eventStreamHandler(operation)
  app.openapi(createRoute({ ...route, middleware: limit }), handler, result => {
    if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
  })
}
