import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  type InitializeRequest,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import type { ServerFactory } from './server.ts'
import { toolSelection } from './tools.ts'

/**
 * What the id of a session says: which object it belongs to, when it was issued (epoch milliseconds), what its client
 * asked for in the initialize request, and which tools and agent its URL selects. So nothing is stored before the
 * session is used. The service authenticates the id, so a client can change none of it.
 */
type SessionId = {
  objectId: string
  issuedAt: number
  protocolVersion: string
  selection: string
  capabilities: Record<string, unknown>
}

const SESSION_ID =
  /^(([0-9a-f]{64})\.([0-9a-z]{1,10})\.(\d{4}-\d{2}-\d{2})\.([a-z0-9,:]{1,300})\.([\w-]{1,1000}))\.([\w-]{22})$/
const MAC_BYTES = 16
/** Stands for every revision that the server does not know: it offers its newest then. */
const UNKNOWN_VERSION = '0000-00-00'
/** Larger capabilities count as none: the server asks nothing of such a client. */
const MAX_CAPABILITIES_BYTES = 600

export type SessionIds = ReturnType<typeof createSessionIds>

/** Creates what issues and checks the session ids of a deployment. `key` is the same in all of its isolates. */
export function createSessionIds(key: string) {
  const macOf = (fields: string) => createHmac('sha256', key).update(fields).digest().subarray(0, MAC_BYTES)
  return {
    format(session: SessionId): string {
      const { objectId, issuedAt, protocolVersion, selection } = session
      const json = JSON.stringify(session.capabilities)
      const capabilities = toBase64Url(Buffer.byteLength(json) > MAX_CAPABILITIES_BYTES ? '{}' : json)
      const fields = [objectId, issuedAt.toString(36), protocolVersion, selection.replaceAll(' ', ':'), capabilities]
      return `${fields.join('.')}.${macOf(fields.join('.')).toString('base64url')}`
    },

    /** Parses a session id; undefined for one that the deployment has not issued. */
    parse(id: string | null): SessionId | undefined {
      const [, fields = '', objectId = '', issuedAt = '', protocolVersion = '', selection = '', encoded = '', mac] =
        SESSION_ID.exec(id ?? '') ?? []
      if (mac === undefined || !timingSafeEqual(macOf(fields), Buffer.from(mac, 'base64url'))) return undefined
      return {
        objectId,
        issuedAt: Number.parseInt(issuedAt, 36),
        protocolVersion,
        selection: selection.replaceAll(':', ' '),
        capabilities: JSON.parse(Buffer.from(encoded, 'base64url').toString()),
      }
    },
  }
}

/** Returns an initialize request with what a session depends on: the server uses nothing else of the client's. */
export const initializeRequestOf = ({
  protocolVersion,
  capabilities,
}: Pick<SessionId, 'protocolVersion' | 'capabilities'>) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities, clientInfo: { name: 'client', version: '0' } },
})

const toBase64Url = (text: string) => Buffer.from(text).toString('base64url')

/** An initialize request with its id. */
type InitializeMessage = InitializeRequest & { id: RequestId }

/**
 * Returns a function that answers initialize requests. It stores nothing: the session exists once it is used, and its
 * id says what it begins with. A flood of these requests must cost little, so the server describes itself once for each
 * revision.
 */
export function createSessionOffers(
  createServer: ServerFactory,
  sessionIds: SessionIds,
  sessions: Pick<Env['MCP_SESSION'], 'newUniqueId'>,
) {
  const results = new Map<string, unknown>()

  async function describe(url: URL, protocolVersion: string): Promise<unknown> {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    await createServer({ url }).connect(transport)
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const parsedBody = initializeRequestOf({ protocolVersion, capabilities: {} })
    const response = await transport.handleRequest(new Request(url, { method: 'POST', headers }), { parsedBody })
    const { result } = (await response.json()) as { result: unknown }
    results.set(protocolVersion, result)
    return result
  }

  return async (request: Request, { id, params }: InitializeMessage): Promise<Response> => {
    const url = new URL(request.url)
    const isKnown = SUPPORTED_PROTOCOL_VERSIONS.includes(params.protocolVersion)
    const protocolVersion = isKnown ? params.protocolVersion : UNKNOWN_VERSION
    const result = results.get(protocolVersion) ?? (await describe(url, protocolVersion))
    const sessionId = sessionIds.format({
      objectId: sessions.newUniqueId().toString(),
      issuedAt: Date.now(),
      protocolVersion,
      selection: toolSelection(url),
      capabilities: params.capabilities,
    })
    return new Response(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`, {
      headers: {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-cache, no-transform',
        'X-Accel-Buffering': 'no',
        'Mcp-Session-Id': sessionId,
      },
    })
  }
}

/** Tells whether an initialize request has the id of a JSON-RPC request. */
export const hasRequestId = (message: InitializeRequest): message is InitializeMessage =>
  'id' in message && (typeof message.id === 'string' || typeof message.id === 'number')
