import { shorten } from '@agent-trading-service/protocol/shorten'
import { createMcpHandler, isInitializeRequest, isJsonContentType, isLegacyRequest } from '@modelcontextprotocol/server'
import { requestIdOf } from '../call.ts'
import { toRefusal } from '../errors/refuse.ts'
import { PRICES, SESSION_UNITS } from '../limits/prices.ts'
import { type RateLimitCount, type RateLimits, rateLimited, rateLimitFields } from '../limits/rate-limits.ts'
import { logRefusal } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { contentEncodingOf, normalizeRequest } from '../requests/normalize-request.ts'
import {
  isTooComplex,
  MAX_BODY_SECONDS,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  readRequestBody,
} from '../requests/request-body.ts'
import { chargeMessages, chargeRequest, chargeSize } from './admission.ts'
import { connectPage, isPageRequest } from './connect-page.ts'
import { rpcError, sessionNotFound } from './errors.ts'
import { normalizeMessages, problemOfCall } from './normalize-messages.ts'
import { noResource, problemOfListen, resourcesOfListen } from './resources.ts'
import { acceptedForms, acceptingBoth, inAcceptedForm } from './response-form.ts'
import type { ServerFactory } from './server.ts'
import { createSessionOffers, hasRequestId, type SessionIds } from './session-id.ts'
import { hubOf } from './subscription-hub-object.ts'
import { selectionProblem } from './tools.ts'

/** What one message needs at most, and a batch of ten in a session. */
const MAX_BODY_BYTES = 64 * 1024
const MAX_BODY_BYTES_IN_SESSION = 256 * 1024
/** No client needs a larger one. */
const MAX_INITIALIZE_BYTES = 16 * 1024
/** Each request of a batch costs what it costs alone. */
const MAX_BATCH = 10
/** Tells whether a path is that of the endpoint; one slash may follow it. */
export const isMcpPath = (pathname: string): boolean => pathname === '/mcp' || pathname === '/mcp/'

const METHODS = ['POST', 'GET', 'DELETE']

type McpRouteOptions = {
  createServer: ServerFactory
  /** Accepted host names, of the endpoint and of the pages that call it. */
  allowedHosts: readonly string[]
  sessionIds: SessionIds
  namespaces: Pick<Env, 'MCP_SESSION' | 'MCP_HUB'>
  /** Returns the first of some resources whose agent is not registered. Agents are not looked up without it. */
  findUnregistered?: (uris: readonly string[]) => Promise<string | undefined>
  /** Nothing is limited without them. */
  rateLimits?: RateLimits
  /** Where clients reach the deployment; the host of the request if it is not configured. */
  baseUrl?: string | undefined
}

const SESSION_OR_REVISION =
  'Bad Request: the Mcp-Session-Id header is required, or, without a session, Mcp-Protocol-Version 2026-07-28 and its _meta'

/**
 * Creates the endpoint /mcp for both protocol generations: requests of the 2026 revision are served here without a
 * session; a session of the 2025 revisions lives in its own Durable Object.
 */
export function createMcpRoute({
  createServer,
  sessionIds,
  allowedHosts,
  namespaces,
  findUnregistered,
  rateLimits,
  baseUrl,
}: McpRouteOptions) {
  const endpointOf = (url: string) => `${baseUrl ?? new URL(url).origin}/mcp`
  const stateless = createMcpHandler(
    ({ requestInfo }) => createServer({ url: new URL(requestInfo?.url ?? 'http://localhost/mcp') }),
    { legacy: 'reject' },
  )

  const offerSession = createSessionOffers(createServer, sessionIds, namespaces.MCP_SESSION)

  /** Forwards a request to the object of its session. */
  async function forwardToSession(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id === null) return rpcError(400, -32000, SESSION_OR_REVISION)
    const session = sessionIds.parse(id)
    const { MCP_SESSION: sessions } = namespaces
    return session === undefined
      ? sessionNotFound()
      : sessions.get(sessions.idFromString(session.objectId)).fetch(request)
  }

  const respond = async (request: Request): Promise<Response> => {
    if (!METHODS.includes(request.method))
      return rpcError(405, -32000, 'Method not allowed', { allow: METHODS.join(', ') })
    const client = rateLimits?.ofClient(request.headers)
    if (request.method !== 'POST') {
      const isPage = isPageRequest(request)
      const name = request.method === 'GET' && !isPage ? 'streams' : 'reads'
      const counts = await chargeRequest(client, name, { units: PRICES[name] + (isPage ? 0 : SESSION_UNITS) })
      const refusal = refusalOf(counts)
      if (refusal) return refusal
      if (isPage) return connectPage(endpointOf(request.url))
    }
    const problem = selectionProblem(new URL(request.url))
    if (problem !== undefined) return rpcError(400, -32602, problem)
    const accepted = acceptedForms(request)
    if (request.method === 'DELETE') return forwardToSession(request)
    if (request.method === 'GET')
      return forwardToSession(
        accepted.stream ? new Request(request, { headers: acceptingBoth(request.headers) }) : request,
      )
    if (!accepted.json && !accepted.stream)
      return rpcError(406, -32000, 'Not Acceptable: accept application/json, text/event-stream or both')

    if (!isJsonContentType(request.headers.get('content-type')))
      return rpcError(415, -32000, 'Unsupported Media Type: Content-Type must be application/json')
    const encoding = contentEncodingOf(request)
    if (encoding !== undefined)
      return rpcError(415, -32000, `Unsupported content encoding ${shown(encoding)}: send the body as plain JSON`)
    const session = sessionIds.parse(request.headers.get('mcp-session-id'))
    const maxBytes = session === undefined ? MAX_BODY_BYTES : MAX_BODY_BYTES_IN_SESSION
    const bySize = await chargeSize(client, request, maxBytes)
    const tooMuch = refusalOf(bySize)
    if (tooMuch) return tooMuch
    const body = await readMessages(request, maxBytes)
    if (body instanceof Response) {
      const counts = bySize.length > 0 ? bySize : await chargeRequest(client, 'reads', { inIsolate: true })
      return withFields(refusalOf(counts) ?? body, rateLimitFields(counts))
    }
    const { counts, leave } = await chargeMessages(client, session !== undefined, [body.parsed].flat())
    try {
      const answered = refusalOf(counts) ?? (await respondToMessages(request, body.text, body.parsed))
      const response = await inAcceptedForm(answered, accepted)
      return withFields(leave === undefined ? response : whenSent(response, leave), rateLimitFields(counts))
    } catch (error) {
      leave?.()
      throw error
    }
  }

  async function respondToMessages(request: Request, text: string, parsedBody: unknown): Promise<Response> {
    const messages = [parsedBody].flat()
    const isInitialize = messages.some(message => isInitializeRequest(message))
    if (isInitialize && text.length > MAX_INITIALIZE_BYTES)
      return rpcError(413, -32000, `The initialize request is larger than ${MAX_INITIALIZE_BYTES} characters`)
    const problem = problemOfCall(parsedBody) ?? problemOfListen(parsedBody)
    if (problem !== undefined) return rpcError(200, -32602, `Invalid params: ${problem}`, {}, idOf(parsedBody))
    const { url, method, signal } = request
    const headers = acceptingBoth(request.headers)
    const forwarded = new Request(url, { method, headers, signal, body: text })
    if (await isLegacyRequest(forwarded, parsedBody)) {
      if (isInitializeRequest(parsedBody) && hasRequestId(parsedBody)) return offerSession(request, parsedBody)
      return forwardToSession(forwarded)
    }
    if (headers.get('mcp-method') === 'subscriptions/listen') {
      const missing = await findUnregistered?.(resourcesOfListen(parsedBody))
      if (missing !== undefined) return rpcError(200, -32602, noResource(missing), {}, idOf(parsedBody))
      return hubOf(namespaces).fetch(forwarded)
    }
    return stateless.fetch(forwarded, { parsedBody })
  }

  return async (given: Request): Promise<Response> => {
    const request = normalizeRequest(given)
    const origin = request.headers.get('origin')
    const hosts = [request.url, ...(origin === null ? [] : [origin])].map(url => URL.parse(url)?.hostname ?? '')
    const foreign = hosts.find(host => !allowedHosts.includes(host))
    if (foreign !== undefined) return rpcError(403, -32000, 'Host or Origin not allowed: add it to ALLOWED_HOSTS')
    if (origin !== null && request.method === 'OPTIONS') return withCors(origin, new Response(null, { status: 204 }))
    const response = await respond(request).catch(error => failure(request, error))
    // The rest of a body that was refused unread.
    if (!request.bodyUsed) await request.body?.cancel()
    return origin === null ? response : withCors(origin, response)
  }
}

/** Returns the messages of a POST as they arrived and parsed, or the response to a body that has none. */
async function readMessages(request: Request, maxBytes: number): Promise<{ text: string; parsed: unknown } | Response> {
  const body = await readRequestBody(request, maxBytes)
  if (body.kind === 'too large') return rpcError(413, -32000, `The request body is larger than ${maxBytes} bytes`)
  if (body.kind === 'too slow')
    return rpcError(408, -32000, `The request body did not arrive within ${MAX_BODY_SECONDS} seconds`)
  const text = body.kind === 'complete' ? body.text : ''
  if (isTooComplex(text))
    return rpcError(
      400,
      -32600,
      `Invalid Request: the body has more than ${MAX_JSON_VALUES} values, or is nested deeper than ${MAX_JSON_DEPTH} levels`,
    )
  const given = parseJson(text)
  const parsed = normalizeMessages(given)
  if (parsed === undefined) return rpcError(400, -32700, 'Parse error: the body is not JSON')
  if (Array.isArray(parsed) && parsed.length > MAX_BATCH)
    return rpcError(400, -32600, `Invalid Request: a batch may have at most ${MAX_BATCH} messages`)
  return { text: JSON.stringify(parsed), parsed }
}

/** Returns the id of a request, for the response to it. */
const idOf = (message: unknown) => (message as { id?: string | number }).id ?? null

/** Returns the response to a request that failed, such as because its session's object did. Logs the failure. */
function failure(request: Request, error: unknown): Response {
  const refusal = toRefusal(error)
  const requestId = requestIdOf(request.headers)
  count('ats_refusals', { code: refusal.body.code, surface: 'mcp' })
  logRefusal(refusal, { requestId, path: '/mcp' })
  const { error: message, retryAfterSeconds } = refusal.body
  return rpcError(refusal.status, refusal.status === 429 ? -32000 : -32603, message, {
    'x-request-id': requestId,
    ...(retryAfterSeconds !== undefined && { 'retry-after': `${retryAfterSeconds}` }),
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const shown = (name = ''): string => JSON.stringify(shorten(name))

/** Returns the response to a client that is over one of its limits; undefined if it is not. */
function refusalOf(counts: readonly RateLimitCount[]): Response | undefined {
  const exceeded = counts.find(count => count.exceeded)
  if (exceeded === undefined) return undefined
  const { error, code } = rateLimited(exceeded).body
  count('ats_refusals', { code, surface: 'mcp' })
  return rpcError(429, -32000, error, { 'retry-after': `${exceeded.resetSeconds}`, ...rateLimitFields(counts) })
}

/** Returns the response with more header fields. */
function withFields(response: Response, fields: Record<string, string>): Response {
  if (Object.keys(fields).length === 0) return response
  const headers = new Headers(response.headers)
  for (const [name, value] of Object.entries(fields)) headers.set(name, value)
  return new Response(response.body, { status: response.status, headers })
}

/** Returns the response, and calls back when its body has been sent or its client is gone. */
function whenSent(response: Response, done: () => void): Response {
  const { readable, writable } = new IdentityTransformStream()
  const sent = response.body?.pipeTo(writable) ?? writable.close()
  sent.catch(() => {}).finally(done)
  return new Response(response.body && readable, response)
}

const PREFLIGHT_SECONDS = '86400'

/** Adds the CORS headers for a page of an allowed origin. */
function withCors(origin: string, response: Response): Response {
  const headers = new Headers(response.headers)
  headers.set('Access-Control-Allow-Origin', origin)
  headers.set('Access-Control-Allow-Methods', METHODS.join(', '))
  headers.set(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Request-Id',
  )
  headers.set('Access-Control-Max-Age', PREFLIGHT_SECONDS)
  headers.set('Access-Control-Expose-Headers', 'Mcp-Session-Id')
  headers.append('Vary', 'Origin')
  return new Response(response.body, { status: response.status, headers })
}
