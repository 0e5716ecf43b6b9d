import type { Context as HonoContext } from 'hono'
import { OperationReply } from '../call.ts'
import type { JsonOperation } from '../operations/operation.ts'
import type { CacheableResponse } from '../read-cache.ts'
import type { AppEnv } from './app-env.ts'
import { validatedInput } from './cast-validated-input.ts'
import { acceptsFormat, alternativeFormat } from './content-negotiation.ts'
import { setETag } from './etag.ts'
import { jsonOf, markCacheable } from './in-memory-response-cache.ts'
import { writePayment } from './payment-headers.ts'

/** Returns the handler of a JSON operation: runs it and responds with JSON or with its alternative format. */
export function jsonHandler(operation: JsonOperation) {
  const { params, body, cache } = operation
  const alternative = alternativeFormat(operation)
  return async (c: HonoContext<AppEnv>): Promise<Response> => {
    const { format, ...query } = validatedInput(c, 'query')
    const input = { ...(params && validatedInput(c, 'param')), ...query, ...(body && validatedInput(c, 'json')) }
    const output = await operation.run(c.var.context, input, c.var.call)
    if (alternative) c.header('Vary', 'Accept', { append: true })
    if (cache === 'none') c.header('Cache-Control', 'no-store')
    else if (await setETag(c, output as CacheableResponse)) return c.body(null, 304)
    if (alternative && acceptsFormat(alternative, c, format))
      return c.body(alternative.write(c, output), 200, { 'Content-Type': `${alternative.mediaType}; charset=utf-8` })
    if (cache === 'isolate') {
      markCacheable(c.req.raw, output as CacheableResponse)
      return c.body(jsonOf(output as CacheableResponse), 200, { 'Content-Type': 'application/json' })
    }
    if (!(output instanceof OperationReply)) return c.json(output as object, operation.status)
    writePayment(c, output.payment)
    return c.json(output.body as object, output.isReplay ? operation.replay : operation.status)
  }
}
