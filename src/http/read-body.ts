import type { MiddlewareHandler } from 'hono'
import { refuse } from '../errors/refuse.ts'
import { MAX_BODY_SECONDS, readRequestBody } from '../request-body.ts'
import type { AppEnv } from './app-env.ts'
import { bodyTooLarge, MAX_BODY_BYTES } from './body-too-large.ts'

/**
 * Reads the body of a request before its handler runs. Throws BODY_TOO_LARGE, BODY_TOO_SLOW or MALFORMED_JSON.
 * The time that the client takes is its own, so the response is due that much later.
 */
export const readBody: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (c.req.raw.body === null) return next()
  const startedAt = Date.now()
  const body = await readRequestBody(c.req.raw, MAX_BODY_BYTES)
  if (body.kind === 'too large') throw bodyTooLarge()
  if (body.kind === 'too slow') throw refuse('BODY_TOO_SLOW', { limitSeconds: MAX_BODY_SECONDS })
  if (body.kind === 'incomplete') throw refuse('MALFORMED_JSON')
  Object.assign(c.req.bodyCache, { text: Promise.resolve(body.text) }) // hono reads it from here
  const { client } = c.var.call
  if (client) client.arrivedAt += Date.now() - startedAt
  await next()
}
