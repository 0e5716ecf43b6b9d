import { createRoute, type OpenAPIHono, type RouteConfig, type z } from '@hono/zod-openapi'
import { invalidRequest, type Operation, Reply } from '../operations/operation.ts'
import { errorBody } from '../resources/error.ts'
import type { AppEnv } from './app.ts'

/** Serves an operation over HTTP: input from path, query and JSON body, the output as JSON. */
export function addRoute(app: OpenAPIHono<AppEnv>, operation: Operation) {
  const { params, query, body } = operation
  app.openapi(
    createRoute(routeOf(operation)),
    async c => {
      const valid = (target: string) => c.req.valid(target as never) as Record<string, unknown>
      const input = {
        ...(params && valid('param')),
        ...(query && valid('query')),
        ...(body && valid('json')),
      }
      const answer = await operation.run(c.var.context, input as never)
      c.header('Cache-Control', 'no-store')
      if (answer instanceof Reply) return c.json(answer.body as object, answer.status)
      return c.json(answer as object, operation.status)
    },
    result => {
      if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
    },
  )
}

const statusWords: Record<number, string> = {
  200: 'Success',
  201: 'Accepted and executed',
  400: 'Invalid input, signature, deadline or nonce, or refused by the contracts',
  401: 'Refresh secret missing or wrong',
  402: 'Payment required',
  404: 'Not found',
  409: 'Conflict with what exists',
  500: 'The deployment lacks its chain configuration, or failed',
  502: 'The chain could not be reached, or the outcome is not known yet',
  503: 'Not configured, paused or busy',
}

function routeOf({
  id,
  method,
  path,
  tag,
  summary,
  description,
  params,
  query,
  body,
  status,
  output,
  errors,
}: Operation) {
  const responses: RouteConfig['responses'] = {
    [status]: { description: statusWords[status] ?? 'Success', content: { 'application/json': { schema: output } } },
  }
  for (const code of errors)
    responses[code] = {
      description: statusWords[code] ?? 'Refused',
      content: { 'application/json': { schema: errorBody } },
    }
  return {
    operationId: id,
    method,
    path,
    tags: [tag],
    summary,
    description,
    request: {
      ...(params && { params }),
      ...(query && { query: query.strict() }),
      ...(body && { body: { required: true, content: { 'application/json': { schema: body.strict() } } } }),
    },
    responses,
  } as RouteConfig
}
