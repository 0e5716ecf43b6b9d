import { getPath } from 'hono/utils/url'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { count } from '../metrics/recorder.ts'
import { rateLimitOf } from '../operations/operation.ts'
import { type ClientLimits, type RateLimitCount, rateLimited, rateLimitFields } from '../rate-limits.ts'
import { declaresMoreThan } from '../request-body.ts'
import { bodyTooLarge, MAX_BODY_BYTES } from './body-too-large.ts'
import { operationAt } from './operation-at.ts'
import { requestIdOf } from './request-id.ts'
import { markOperation } from './request-metrics.ts'

type Serve = (request: Request) => Response | Promise<Response>
/** What was decided about a request before it reached the app. */
export type Admission = { client: ClientLimits; count: RateLimitCount | undefined; refusal?: Refusal }

const admissions = new WeakMap<Request, Admission>()

/** Returns what was decided about a request; undefined if it has no client address, and for preflights. */
export const admissionOf = (request: Request): Admission | undefined => admissions.get(request)

/** What a refusal says to its own client only. */
const PERSONAL_HEADERS = ['X-Request-Id', 'Retry-After', 'RateLimit', 'RateLimit-Policy', 'Content-Length']

/**
 * Wraps an app with the admission of requests, which is decided from address, method, path and the body's declared length:
 * before routing, and before the body is read. A refused request costs no more than its response.
 */
export function withAdmission(serve: Serve, contextOf: () => Context): Serve {
  /** The header fields that all refusals share, from the first one, which the app made. */
  let refusalHeaders: Headers | undefined

  async function refuse(request: Request, admission: Admission, refusal: Refusal): Promise<Response> {
    await request.body?.cancel()
    if (refusalHeaders === undefined) {
      const headers = new Headers(request.headers)
      headers.delete('Content-Length')
      const bodyless = new Request(request.url, { method: request.method, headers })
      admissions.set(bodyless, { ...admission, refusal })
      const response = await serve(bodyless)
      if (response.status !== refusal.status) return response
      refusalHeaders = new Headers(response.headers)
      for (const name of PERSONAL_HEADERS) refusalHeaders.delete(name)
      return response
    }
    count('ats_refusals', { code: refusal.body.code, surface: 'http' })
    const requestId = requestIdOf(request)
    const headers = new Headers(refusalHeaders)
    headers.set('X-Request-Id', requestId)
    const { retryAfterSeconds } = refusal.body
    if (retryAfterSeconds !== undefined) headers.set('Retry-After', `${retryAfterSeconds}`)
    for (const [field, value] of Object.entries(fieldsOf(admission))) headers.set(field, value)
    return new Response(JSON.stringify({ ...refusal.body, requestId }), { status: refusal.status, headers })
  }

  return async request => {
    const client = contextOf().rateLimits.ofClient(request.headers)
    // Preflights read nothing, and a browser cannot do without their response.
    if (client === undefined || request.method === 'OPTIONS') return serve(request)
    const operation = operationAt(request.method, getPath(request))
    // Pages, documents and unknown paths count as reads.
    const name = operation === undefined ? 'reads' : rateLimitOf(operation)
    const isTooLarge = request.body !== null && declaresMoreThan(MAX_BODY_BYTES, request)
    const admission = { client, count: name && (await client.count(name, { inIsolate: isTooLarge })) }
    if (operation) markOperation(request, operation.id)
    const refusal = admission.count?.exceeded ? rateLimited(admission.count) : isTooLarge ? bodyTooLarge() : undefined
    if (refusal) {
      await client.delayRefusal()
      return refuse(request, admission, refusal)
    }
    try {
      await client.enter({ getsOut: name === undefined, opensStream: operation?.kind === 'event-stream' })
    } catch (error) {
      if (error instanceof Refusal) return refuse(request, admission, error)
      throw error
    }
    admissions.set(request, admission)
    try {
      return await serve(request)
    } finally {
      client.leave()
    }
  }
}

/** Returns the header fields that say what is left of the limit that a request was counted against. */
export const fieldsOf = ({ count }: Admission): Record<string, string> => rateLimitFields(count ? [count] : [])
