import type { McpServer, Server } from '@modelcontextprotocol/server'
import type { InTurn } from './parallel-limit.ts'

/** The resource subscriptions of a session (2025 revisions of the protocol). */
export type Subscriptions = {
  /** Returns false if the session has reached its maximum. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
}

/**
 * What a server is created for: the URL of the request and, if there is a session, its subscriptions and the limit of the reads
 * that it makes at a time.
 */
export type ServerOptions = { url: URL; subscriptions?: Subscriptions; readInTurn?: InTurn }

/** Creates a server: for one request (2026 revision of the protocol) or for one session (2025 revisions). */
export type ServerFactory = (options: ServerOptions) => McpServer | Server
