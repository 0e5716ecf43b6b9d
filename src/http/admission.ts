import type { MiddlewareHandler } from 'hono'
import { Refusal } from '../errors/refusal.ts'
import { malformed, refuse } from '../errors/refuse.ts'
import { PRICES, unitsOfBody } from '../limits/prices.ts'
import { rateLimited, rateLimitFields } from '../limits/rate-limits.ts'
import { requestKindOf, turnKindOf, unitsOf } from '../operations/operation.ts'
import { contentEncodingOf } from '../requests/normalize-request.ts'
import {
  declaresMoreThan,
  isTooComplex,
  MAX_BODY_SECONDS,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  readRequestBody,
} from '../requests/request-body.ts'
import type { AppEnv } from './request-state.ts'

const MAX_BODY_BYTES = 100 * 1024

const bodyTooLarge = () => refuse('BODY_TOO_LARGE', { limitBytes: MAX_BODY_BYTES })

/**
 * Counts a request. Throws RATE_LIMITED or BODY_TOO_LARGE, decided from networks, operation and the declared length of
 * the body, before the body is read.
 */
export const admit: MiddlewareHandler<AppEnv> = async (c, next) => {
  const { client } = c.var.call
  if (client === undefined) return next()
  const { operation } = c.var
  // Pages, documents and unknown paths count as reads.
  const name = operation === undefined ? 'reads' : requestKindOf(operation)
  const isTooLarge = c.req.raw.body !== null && declaresMoreThan(MAX_BODY_BYTES, c.req.raw)
  try {
    const ofBody = isTooLarge ? 0 : unitsOfBody(c.req.raw, MAX_BODY_BYTES)
    const units = (operation === undefined ? PRICES.reads : unitsOf(operation)) + ofBody
    const count = await client.count(name, { inIsolate: isTooLarge, units })
    for (const [field, value] of Object.entries(rateLimitFields(count ? [count] : []))) c.header(field, value)
    if (count?.exceeded || isTooLarge) {
      await client.delayRefusal()
      throw count?.exceeded ? rateLimited(count) : bodyTooLarge()
    }
  } catch (error) {
    if (error instanceof Refusal) await c.req.raw.body?.cancel()
    throw error
  }
  await next()
}

/**
 * Reads the body of a request before its handler runs. Throws UNSUPPORTED_CONTENT_ENCODING, BODY_TOO_LARGE,
 * BODY_TOO_SLOW, MALFORMED_JSON, or INVALID_REQUEST for JSON that would cost more to parse and validate than any
 * operation needs. Upload time does not count against the response deadline.
 */
export const readBody: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (c.req.raw.body === null) return next()
  const encoding = contentEncodingOf(c.req.raw)
  if (encoding !== undefined) throw refuse('UNSUPPORTED_CONTENT_ENCODING', { encoding })
  const startedAt = Date.now()
  const body = await readRequestBody(c.req.raw, MAX_BODY_BYTES)
  if (body.kind === 'too large') throw bodyTooLarge()
  if (body.kind === 'too slow') throw refuse('BODY_TOO_SLOW', { limitSeconds: MAX_BODY_SECONDS })
  if (body.kind === 'incomplete') throw refuse('MALFORMED_JSON')
  if (isTooComplex(body.text))
    throw malformed(
      `the body has more than ${MAX_JSON_VALUES} values, or is nested deeper than ${MAX_JSON_DEPTH} levels`,
    )
  Object.assign(c.req.bodyCache, { text: Promise.resolve(body.text) }) // hono reads it from here
  const { client } = c.var.call
  if (client) client.arrivedAt += Date.now() - startedAt
  await next()
}

/**
 * Lets a request wait for its turn, which ends with its response. Its body has arrived by then: a client that sends it
 * slowly holds no slot. Throws RATE_LIMITED.
 */
export const takeTurn: MiddlewareHandler<AppEnv> = async (c, next) => {
  const { operation, call } = c.var
  const kind = operation === undefined ? 'request' : turnKindOf(operation)
  if (call.client === undefined || kind === undefined) return next()
  await call.client.enter(kind)
  try {
    await next()
  } finally {
    call.client.leave()
  }
}
