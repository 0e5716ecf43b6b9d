import type { McpServer, Server } from '@modelcontextprotocol/server'

/** Where resource subscriptions of one session of the 2025 revisions are kept. */
export type Subscriptions = {
  /** False when the session has as many as it may. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
}

/** What a server is made for: the URL it was asked at, and a session's subscriptions where there is a session. */
export type Serving = { url: URL; subscriptions?: Subscriptions }

/** Makes the server that both protocol eras are served by: for one request of 2026, or for one session of 2025. */
export type ServerFactory = (serving: Serving) => McpServer | Server

/** A JSON-RPC error outside of any request, as the transport answers it. */
export const rpcError = (status: number, code: number, message: string, headers: HeadersInit = {}): Response =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status, headers })

export const sessionNotFound = () => rpcError(404, -32001, 'Session not found')
