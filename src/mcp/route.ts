import {
  createMcpHandler,
  isInitializeRequest,
  isJsonContentType,
  isLegacyRequest,
  readRequestBody,
} from '@modelcontextprotocol/server'
import { hubOf } from './hub-object.ts'
import { rpcError, type ServerFactory, sessionNotFound } from './server-factory.ts'

const BODY_LIMIT_BYTES = 4 * 1024 * 1024
const METHODS = ['POST', 'GET', 'DELETE']

type Options = {
  createServer: ServerFactory
  /** Host names under which the endpoint may be asked, and from whose pages. */
  allowedHosts: readonly string[]
  namespaces: Pick<Env, 'MCP_SESSION' | 'MCP_HUB'>
}

/**
 * The endpoint /mcp for both protocol eras: the 2026 revision is answered here without a session, a session of the
 * 2025 revisions lives in its own Durable Object.
 */
export function createMcpRoute({ createServer, allowedHosts, namespaces }: Options) {
  const stateless = createMcpHandler(
    ({ requestInfo }) => createServer({ url: new URL(requestInfo?.url ?? 'http://localhost/mcp') }),
    { legacy: 'reject' },
  )

  const answer = async (request: Request): Promise<Response> => {
    if (!METHODS.includes(request.method))
      return rpcError(405, -32000, 'Method not allowed', { allow: METHODS.join(', ') })
    if (request.method !== 'POST') return inSession(request, namespaces)

    if (!isJsonContentType(request.headers.get('content-type')))
      return rpcError(415, -32000, 'Unsupported Media Type: Content-Type must be application/json')
    const body = await readRequestBody(request, BODY_LIMIT_BYTES)
    if (body.tooLarge) return rpcError(413, -32000, `The request body is larger than ${BODY_LIMIT_BYTES} bytes`)
    const parsedBody = parseJson(body.text)
    if (parsedBody === undefined) return rpcError(400, -32700, 'Parse error: the body is not JSON')
    const { url, method, headers, signal } = request
    const again = new Request(url, { method, headers, signal, body: body.text })
    if (await isLegacyRequest(again, parsedBody)) return inSession(again, namespaces, isInitializeRequest(parsedBody))
    if (headers.get('mcp-method') === 'subscriptions/listen') return hubOf(namespaces).fetch(again)
    return stateless.fetch(again, { parsedBody })
  }

  return async (request: Request): Promise<Response> => {
    const origin = request.headers.get('origin')
    const hosts = [request.url, ...(origin === null ? [] : [origin])].map(url => URL.parse(url)?.hostname ?? '')
    const foreign = hosts.find(host => !allowedHosts.includes(host))
    if (foreign !== undefined)
      return rpcError(403, -32000, 'Host or Origin not allowed: ALLOWED_HOSTS names those that are')
    if (origin === null) return answer(request)
    return withCors(origin, request.method === 'OPTIONS' ? new Response(null, { status: 204 }) : await answer(request))
  }
}

/** Hands a request to its session: a new one for an initialize request without a session id. */
async function inSession(
  request: Request,
  { MCP_SESSION: sessions }: Pick<Env, 'MCP_SESSION'>,
  isInitialize = false,
): Promise<Response> {
  const id = request.headers.get('mcp-session-id')
  if (id === null) {
    if (!isInitialize) return rpcError(400, -32000, 'Bad Request: the Mcp-Session-Id header is required')
    return sessions.get(sessions.newUniqueId()).fetch(request)
  }
  const object = idOf(sessions, id)
  return object === undefined ? sessionNotFound() : sessions.get(object).fetch(request)
}

/** The object of a session id; undefined for an id that this deployment never made. */
function idOf(sessions: Env['MCP_SESSION'], id: string): DurableObjectId | undefined {
  try {
    return sessions.idFromString(id)
  } catch {
    return undefined
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Lets a page of an allowed origin speak the protocol. */
function withCors(origin: string, response: Response): Response {
  const headers = new Headers(response.headers)
  headers.set('Access-Control-Allow-Origin', origin)
  headers.set('Access-Control-Allow-Methods', METHODS.join(', '))
  headers.set(
    'Access-Control-Allow-Headers',
    'Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Request-Id',
  )
  headers.set('Access-Control-Expose-Headers', 'Mcp-Session-Id')
  headers.append('Vary', 'Origin')
  return new Response(response.body, { status: response.status, headers })
}
