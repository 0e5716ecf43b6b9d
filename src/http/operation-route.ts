import { createRoute, type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { invalidRequest, type Operation, Reply } from '../operations/define-operation.ts'
import type { CacheableResponse } from '../read-cache.ts'
import { errorBody } from '../resources/error.ts'
import { paymentRequiredBody } from '../resources/registration.ts'
import type { AppEnv } from './app.ts'
import { formatOf, isAskedFor } from './content-negotiation.ts'
import { isNeverKept, isUnchanged } from './etag.ts'
import { paymentHeaders, writePayment } from './payment-headers.ts'
import { noteAnswer, textOf } from './response-cache.ts'

const JSON_TYPE = 'application/json'

/** Serves an operation over HTTP: input from path, query and JSON body, the output as JSON or in its other format. */
export function addRoute(app: OpenAPIHono<AppEnv>, operation: Operation) {
  const { params, body, method, path } = operation
  const other = formatOf(operation)
  app.openapi(
    createRoute(routeOf(operation)),
    async c => {
      const valid = (target: string) => c.req.valid(target as never) as Record<string, unknown>
      const { format, ...asked } = valid('query')
      const input = { ...(params && valid('param')), ...asked, ...(body && valid('json')) }
      const answer = await operation.run(c.var.context, input as never)
      if (other) c.header('Vary', 'Accept', { append: true })
      if (method === 'get' && isUnchanged(c, path, answer)) return c.body(null, 304)
      if (method !== 'get') c.header('Cache-Control', 'no-store')
      if (other && isAskedFor(other, c, format))
        return c.body(other.write(c, answer as never), 200, { 'Content-Type': `${other.mediaType}; charset=utf-8` })
      if (operation.remembered) {
        noteAnswer(c.req.raw, answer as CacheableResponse)
        return c.body(textOf(answer as CacheableResponse), 200, { 'Content-Type': JSON_TYPE })
      }
      if (!(answer instanceof Reply)) return c.json(answer as object, operation.status)
      writePayment(c, answer.payment)
      return c.json(answer.body as object, answer.status)
    },
    result => {
      if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
    },
  )
}

export const statusWords: Record<number, string> = {
  200: 'Success',
  201: 'Accepted and executed',
  400: 'Invalid input, signature, deadline or nonce, or refused by the contracts',
  401: 'Refresh secret missing or wrong',
  402: 'Payment required',
  404: 'Not found',
  409: 'Conflict with what exists',
  413: 'The request body is too large',
  500: 'The deployment lacks its chain configuration, or failed',
  502: 'The chain could not be reached, or the outcome is not known yet',
  503: 'Not configured, paused or busy',
}
/** What one status means to one operation, where the general words are not it. */
const ownWords: Record<string, Record<number, string>> = {
  getReadiness: { 503: 'Trading is not possible' },
  refreshPrices: { 502: 'The market-data provider or the chain could not be reached' },
  registerAgent: { 200: 'The identical signed body was executed before; the same answer' },
  linkErc8004: { 200: 'The identical signed body was executed before; the same answer' },
}

/** Operations that answer 200 for a body that was executed before. */
const repeatable = ['registerAgent', 'linkErc8004']

function routeOf(operation: Operation) {
  const { id, method, path, tag, summary, description, params, query, body, status, errors } = operation
  const words = (code: number) => ownWords[id]?.[code] ?? statusWords[code] ?? 'Refused'
  const isPaid = errors.includes(402)
  const responses: RouteConfig['responses'] = {}
  for (const code of repeatable.includes(id) ? [200, status] : [status])
    responses[code] = {
      description: words(code),
      content: contentOf(operation),
      ...(isPaid && { headers: paymentHeaders.success }),
    }
  if (method === 'get' && !isNeverKept(path) && describesBlock(operation))
    responses[304] = { description: 'The block of the If-None-Match header is still the newest' }
  for (const code of new Set([...errors, 400, ...(body ? [413] : []), 500]))
    responses[code] = {
      description: words(code),
      content: { [JSON_TYPE]: { schema: code === 402 ? paymentRequiredBody : errorBody } },
      ...(code === 402 && { headers: paymentHeaders.required }),
    }
  const asked = z.object({ ...query?.shape, ...formatOf(operation)?.query.shape })
  return {
    operationId: id,
    method,
    path,
    tags: [tag],
    summary,
    description,
    security: operation.security === 'bearer' ? [{ refreshSecret: [] }, {}] : [],
    request: {
      ...(params && { params }),
      query: asked.strict(),
      ...(isPaid && { headers: paymentHeaders.request }),
      ...(body && {
        body: {
          required: operation.bodyIsOptional !== true,
          content: { [JSON_TYPE]: { schema: body.strict() } },
        },
      }),
    },
    responses,
  } as RouteConfig
}

function contentOf(operation: Operation) {
  const other = formatOf(operation)
  return {
    [JSON_TYPE]: { schema: operation.output },
    ...(other && { [other.mediaType]: { schema: z.string(), example: other.example } }),
  }
}

const describesBlock = ({ output }: Operation) => output instanceof z.ZodObject && 'asOf' in output.shape
