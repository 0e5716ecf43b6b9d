import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import type { Refusal } from '../errors/refusal.ts'
import type { Operation } from '../operations/operation.ts'
import { invalidRequest } from '../resources/invalid-request.ts'
import { fieldsOf } from './admission.ts'
import type { AppEnv } from './app-env.ts'
import { alternativeFormat } from './content-negotiation.ts'
import { eventStreamHandler } from './event-stream-handler.ts'
import { jsonHandler } from './json-handler.ts'
import { openApiRoute } from './openapi-of-operation.ts'
import { markOperation } from './request-metrics.ts'
import { textHandler } from './text-handler.ts'

/** Adds the route of an operation. Path, query, headers and body are validated before its handler runs. */
export function addOperationRoute(app: OpenAPIHono<AppEnv>, operation: Operation): void {
  const route = openApiRoute(operation)
  const describeRequest: MiddlewareHandler<AppEnv> = (c, next) => {
    markOperation(c.req.raw, operation.id)
    const { admission } = c.var
    if (admission) for (const [field, value] of Object.entries(fieldsOf(admission))) c.header(field, value)
    return next()
  }
  const handler = handlerOf(operation)
  app.openapi(createRoute({ ...route, middleware: describeRequest }), handler, result => {
    if (!result.success) throw refusalOf(operation, result as unknown as FailedValidation)
  })
}

function handlerOf(operation: Operation) {
  switch (operation.kind) {
    case 'json':
      return jsonHandler(operation)
    case 'event-stream':
      return eventStreamHandler(operation)
    case 'text':
      return textHandler(operation)
  }
}

/** A failed validation as the validator passes it on; hono's type lacks the data. */
type FailedValidation = { target: string; error: z.ZodError; data: unknown }

function refusalOf(operation: Operation, { target, error, data }: FailedValidation): Refusal {
  const { params, query } = operation
  const schemas: Record<string, z.ZodObject | undefined> = {
    param: params,
    query: z.object({ ...query?.shape, ...(operation.kind === 'json' && alternativeFormat(operation)?.query.shape) }),
    json: operation.kind === 'json' ? operation.body : undefined,
  }
  return invalidRequest(error.issues, { given: data, fields: schemas[target]?.shape ?? {} })
}
