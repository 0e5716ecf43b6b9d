import {
  type InitializeRequest,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { rpcError } from './json-rpc-errors.ts'
import type { ServerFactory } from './server-types.ts'
import { formatSessionId, initializeRequestOf, UNKNOWN_VERSION } from './session-id.ts'
import { toolSelection } from './tools.ts'

/** An initialize request with its id. */
type InitializeMessage = InitializeRequest & { id: RequestId }

/**
 * Returns a function that answers initialize requests. It stores nothing: the session exists once it is used, and its id says
 * what it begins with. A flood of these requests must cost little, so the server describes itself once for each revision.
 */
export function createSessionOffers(createServer: ServerFactory, sessions: Pick<Env['MCP_SESSION'], 'newUniqueId'>) {
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
    const accept = request.headers.get('accept') ?? ''
    if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
      return rpcError(406, -32000, 'Not Acceptable: accept both application/json and text/event-stream')
    const url = new URL(request.url)
    const isKnown = SUPPORTED_PROTOCOL_VERSIONS.includes(params.protocolVersion)
    const protocolVersion = isKnown ? params.protocolVersion : UNKNOWN_VERSION
    const result = results.get(protocolVersion) ?? (await describe(url, protocolVersion))
    const sessionId = formatSessionId({
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
