import type { McpServer, Server } from '@modelcontextprotocol/server'

/** The resource subscriptions of a session (2025 revisions of the protocol). */
export type Subscriptions = {
  /** Returns false if the session has reached its maximum. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
}

/** What a server is created for: the URL of the request, and the subscriptions if there is a session. */
export type ServerOptions = { url: URL; subscriptions?: Subscriptions }

/** Creates a server: for one request (2026 revision of the protocol) or for one session (2025 revisions). */
export type ServerFactory = (options: ServerOptions) => McpServer | Server
