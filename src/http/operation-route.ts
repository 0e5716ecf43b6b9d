import { createRoute, type OpenAPIHono, type z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { invalidRequest } from '../operations/invalid-request.ts'
import { type Operation, rateLimitOf } from '../operations/operation.ts'
import { rateLimited, rateLimitFields } from '../rate-limits.ts'
import type { AppEnv } from './app-env.ts'
import { eventStreamHandler } from './event-stream-handler.ts'
import { jsonHandler } from './json-handler.ts'
import { openApiRoute } from './openapi-route.ts'

/** Adds the route of an operation. Path, query, headers and body are validated before its handler runs. */
export function addOperationRoute(app: OpenAPIHono<AppEnv>, operation: Operation): void {
  const name = rateLimitOf(operation)
  const route = openApiRoute(operation)
  // Checked before the input, because a refusal of the input costs too.
  const limit: MiddlewareHandler<AppEnv> = async (c, next) => {
    const count = name && (await c.var.context.client?.count(name))
    if (!count) return next()
    for (const [field, value] of Object.entries(rateLimitFields([count]))) c.header(field, value)
    if (count.isExhausted) throw rateLimited(count)
    return next()
  }
  const handler = operation.kind === 'json' ? jsonHandler(operation) : eventStreamHandler(operation)
  app.openapi(createRoute({ ...route, middleware: limit }), handler, result => {
    if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
  })
}
