import { createRoute, type OpenAPIHono, type z } from '@hono/zod-openapi'
import { invalidRequest } from '../operations/invalid-request.ts'
import type { Operation } from '../operations/operation.ts'
import type { AppEnv } from './app-env.ts'
import { eventStreamHandler } from './event-stream-handler.ts'
import { jsonHandler } from './json-handler.ts'
import { openApiRoute } from './openapi-route.ts'

/** Adds the route of an operation. Path, query, headers and body are validated before its handler runs. */
export function addOperationRoute(app: OpenAPIHono<AppEnv>, operation: Operation): void {
  const handler = operation.kind === 'json' ? jsonHandler(operation) : eventStreamHandler(operation)
  app.openapi(createRoute(openApiRoute(operation)), handler, result => {
    if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
  })
}
