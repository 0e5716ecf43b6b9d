import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import { bytesToHex } from 'viem'
import { blockShownIn, OperationReply, respondInTime } from '../call.ts'
import type { CacheableResponse } from '../chain/read-cache.ts'
import { VERSION } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { EventStreamOperation, JsonOperation, Operation, TextOperation } from '../operations/operation.ts'
import { clientNetworksOf } from '../requests/client-address.ts'
import { invalidRequest } from '../resources/invalid-request.ts'
import { alternativeFormats, formatQuery, preferredFormat } from './content-negotiation.ts'
import { openApiRoute } from './openapi-of-operation.ts'
import { writePayment } from './payment-headers.ts'
import type { AppEnv } from './request-state.ts'

type Handler = (c: HonoContext<AppEnv>) => Promise<Response>

/** Adds the route of an operation. Path, query, headers and body are validated before its handler runs. */
export function addOperationRoute(app: OpenAPIHono<AppEnv>, context: Context, operation: Operation): void {
  app.openapi(createRoute(openApiRoute(operation)), handlerOf(context, operation), result => {
    if (!result.success) throw refusalOf(operation, result as unknown as FailedValidation)
  })
}

function handlerOf(context: Context, operation: Operation): Handler {
  switch (operation.kind) {
    case 'json':
      return jsonHandler(context, operation)
    case 'event-stream':
      return eventStreamHandler(context, operation)
    case 'text':
      return textHandler(context, operation)
  }
}

/** Returns the handler of a JSON operation: runs it and responds with JSON or with its alternative format. */
function jsonHandler(context: Context, operation: JsonOperation): Handler {
  const { params, body, cache } = operation
  const alternatives = alternativeFormats(operation)
  return async c => {
    const { format, ...query } = validatedInput(c, 'query')
    const input = { ...(params && validatedInput(c, 'param')), ...query, ...(body && validatedInput(c, 'json')) }
    const minBlock = validatedInput(c, 'header')['min-block'] as bigint | undefined
    const output = await operation.run(context, input, { ...c.var.call, minBlock })
    const shown = blockShownIn(output)
    if (shown !== undefined) c.header('X-As-Of-Block', `${shown}`)
    const json = cache === 'none' ? undefined : JSON.stringify(output)
    if (alternatives.length > 0) c.header('Vary', 'Accept', { append: true })
    const alternative = preferredFormat(alternatives, c, format)
    if (json === undefined) c.header('Cache-Control', 'no-store')
    else if (await setETag(c, output as CacheableResponse, json, alternative?.name)) return c.body(null, 304)
    if (alternative)
      return c.body(alternative.write(c, output), 200, { 'Content-Type': `${alternative.mediaType}; charset=utf-8` })
    if (json !== undefined) {
      if (cache === 'isolate') c.set('cacheable', { output: output as CacheableResponse, json })
      return c.body(json, 200, { 'Content-Type': 'application/json' })
    }
    if (!(output instanceof OperationReply)) return c.json(output as object, operation.status)
    writePayment(c, output.payment)
    return c.json(output.body as object, output.isReplay ? operation.replay : operation.status)
  }
}

const DIGEST_BYTES = 8

/**
 * Sets the ETag of a response that describes a block, and returns whether the client already has that response. The tag
 * has a digest of the content, because a reorg can put another block at the same number and second, and the format if
 * it is not JSON, because a 304 tells a cache which of its responses to use.
 */
async function setETag(c: HonoContext, { asOf }: CacheableResponse, json: string, format?: string): Promise<boolean> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(json))
  const tag = bytesToHex(new Uint8Array(digest, 0, DIGEST_BYTES)).slice(2)
  const etag = `W/"${VERSION}-${asOf.blockNumber}-${asOf.blockTimestamp}-${tag}${format ? `-${format}` : ''}"`
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', etag)
  return matchesETag(c.req.header('If-None-Match'), etag)
}

/** Compares weakly, as If-None-Match requires: W/"a" matches "a". */
export function matchesETag(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '')
  return header?.split(',').some(tag => tag.trim() === '*' || opaque(tag) === opaque(etag)) ?? false
}

const EVENT_STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  // Proxies must not store, transform or buffer the stream.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}

/**
 * Returns the handler of an event stream. Errors are responses as usual, because they occur before the stream opens.
 */
function eventStreamHandler(context: Context, operation: EventStreamOperation): Handler {
  return async c => {
    const { after, lastEventId: sameAsAfter, heartbeat, ...query } = validatedInput(c, 'query')
    const { call } = c.var
    const input = { ...(operation.params && validatedInput(c, 'param')), ...query }
    const filter = await operation.filter(context, input, call)
    // A browser reconnects to the URL of its first connection, with the newer id in the header.
    const lastEventId = (validatedInput(c, 'header')['last-event-id'] ?? after ?? sameAsAfter) as string | undefined
    if (c.req.raw.method === 'HEAD') return c.body(null, 200, EVENT_STREAM_HEADERS)
    const opening = context.live.open({
      filter,
      heartbeatSeconds: heartbeat as number,
      client: clientNetworksOf(c.req.raw.headers),
      ...(lastEventId !== undefined && { lastEventId }),
    })
    const stream = await respondInTime(call, opening).catch(error => {
      opening.then(late => late.cancel()).catch(() => {}) // nobody reads a stream that opens too late
      throw error
    })
    return c.body(stream, 200, EVENT_STREAM_HEADERS)
  }
}

/** Returns the handler of an operation whose response is text of a media type of its own. */
function textHandler(context: Context, { run, contentType }: TextOperation): Handler {
  return async c =>
    c.body(await run(context, c.var.call), 200, { 'Content-Type': contentType, 'Cache-Control': 'no-store' })
}

/**
 * Returns a part of the request that the route's schema has validated. Routes are built from the operations at run
 * time, so hono cannot know their input types: this is the only place that casts past it.
 */
const validatedInput = (c: HonoContext<AppEnv>, part: 'param' | 'query' | 'header' | 'json') =>
  c.req.valid(part as never) as Record<string, unknown>

/** A failed validation as the validator passes it on; hono's type lacks the data. */
type FailedValidation = { target: string; error: z.ZodError; data: unknown }

function refusalOf(operation: Operation, { target, error, data }: FailedValidation): Refusal {
  const { params, query } = operation
  const schemas: Record<string, z.ZodObject | undefined> = {
    param: params,
    query: z.object({ ...query?.shape, ...(operation.kind === 'json' && formatQuery(alternativeFormats(operation))) }),
    json: operation.kind === 'json' ? operation.body : undefined,
  }
  return invalidRequest(error.issues, { given: data, fields: schemas[target]?.shape ?? {} })
}
