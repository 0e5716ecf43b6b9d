import { DurableObject } from 'cloudflare:workers'
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import { clientAddressOf } from '../client-address.ts'
import { parseConfig } from '../config/config.ts'
import { eventLogOf } from '../live/client.ts'
import { rpcError } from './errors.ts'
import { agentUris } from './resources.ts'
import type { ServerFactory } from './server.ts'

const MAX_SUBSCRIPTIONS_PER_SESSION = 100
const MAX_SESSIONS_PER_ADDRESS = 200
const MAX_LISTEN_STREAMS_PER_ADDRESS = 100
/** A session that did not tell its end is forgotten after this long. */
const MAX_SESSION_AGE_MS = 86_400_000

/**
 * Delivers resource updates to all subscribers. Holds the listen streams of the protocol's 2026 revision, and the
 * subscriptions of the sessions of its 2025 revisions.
 */
export abstract class McpHubObject extends DurableObject<Env> {
  protected abstract readonly createServer: ServerFactory
  /** How many listen streams each address has open. */
  private readonly listenStreams = new Map<string, number>()
  private streamHandler: McpHttpHandler | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    ctx.storage.sql.exec(
      'CREATE TABLE IF NOT EXISTS subscription (uri TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (uri, session)) WITHOUT ROWID',
    )
    ctx.storage.sql.exec('CREATE INDEX IF NOT EXISTS subscription_session ON subscription (session)')
    ctx.storage.sql.exec(
      'CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, address TEXT NOT NULL, opened_at INTEGER NOT NULL) WITHOUT ROWID',
    )
    ctx.storage.sql.exec('CREATE INDEX IF NOT EXISTS session_address ON session (address)')
  }

  /** Opens a listen stream. One address cannot take all of them. */
  override async fetch(request: Request): Promise<Response> {
    const address = clientAddressOf(request.headers)
    const count = this.listenStreams.get(address) ?? 0
    if (count >= MAX_LISTEN_STREAMS_PER_ADDRESS)
      return rpcError(429, -32000, 'Your address has the maximum number of listen streams open', {
        'retry-after': '15',
      })
    this.listenStreams.set(address, count + 1)
    this.watchEvents()
    const release = () => {
      const open = (this.listenStreams.get(address) ?? 0) - 1
      if (open > 0) this.listenStreams.set(address, open)
      else this.listenStreams.delete(address)
    }
    try {
      return withEnd(await this.handler.fetch(request), release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Counts a new session of an address. Returns false if the address has reached its maximum. */
  async admit(session: string, address: string): Promise<boolean> {
    const { sql } = this.ctx.storage
    sql.exec('DELETE FROM session WHERE address = ? AND opened_at < ?', address, Date.now() - MAX_SESSION_AGE_MS)
    const { count } = sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM session WHERE address = ?', address)
      .one()
    if (count >= MAX_SESSIONS_PER_ADDRESS) return false
    sql.exec('INSERT INTO session (id, address, opened_at) VALUES (?, ?, ?)', session, address, Date.now())
    return true
  }

  /** Notifies the subscribers of all resources of these agents. */
  agentsChanged(agentIds: readonly number[]): Promise<void> {
    return this.resourcesUpdated(agentIds.flatMap(agentUris))
  }

  /** Notifies every subscriber of these resources. */
  async resourcesUpdated(uris: readonly string[]): Promise<void> {
    const { MCP_SESSION: sessions } = this.env
    const notify = async (uri: string) => {
      this.handler.notify.resourceUpdated(uri)
      const rows = this.ctx.storage.sql.exec<{ session: string }>('SELECT session FROM subscription WHERE uri = ?', uri)
      await Promise.allSettled(
        rows.toArray().map(({ session }) => sessions.get(sessions.idFromString(session)).resourceUpdated(uri)),
      )
    }
    await Promise.all(uris.map(notify))
  }

  /** Subscribes a session to a resource. Returns false if the session has reached its maximum. */
  async subscribe(session: string, uri: string): Promise<boolean> {
    const { sql } = this.ctx.storage
    const { count } = sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM subscription WHERE session = ?', session)
      .one()
    if (count >= MAX_SUBSCRIPTIONS_PER_SESSION) return false
    sql.exec('INSERT OR IGNORE INTO subscription (uri, session) VALUES (?, ?)', uri, session)
    this.watchEvents()
    return true
  }

  /** Returns whether a client waits for changes of resources. */
  hasSubscribers(): boolean {
    const { sql } = this.ctx.storage
    return this.listenStreams.size > 0 || sql.exec('SELECT 1 FROM subscription LIMIT 1').toArray().length > 0
  }

  /** Has the chain followed closely from now on. The cron trigger renews it. */
  private watchEvents() {
    const { chain } = parseConfig({ ...this.env })
    const watched = chain && eventLogOf(this.env.EVENT_STREAMS, chain).watchForSubscribers()
    this.ctx.waitUntil(Promise.resolve(watched).catch(() => {}))
  }

  async unsubscribe(session: string, uri: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ? AND uri = ?', session, uri)
  }

  /** Deletes a session that has ended, with every subscription. */
  async forget(session: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ?', session)
    this.ctx.storage.sql.exec('DELETE FROM session WHERE id = ?', session)
  }

  private get handler() {
    this.streamHandler ??= createMcpHandler(
      ({ requestInfo }) => this.createServer({ url: new URL(requestInfo?.url ?? 'http://hub') }),
      { legacy: 'reject' },
    )
    return this.streamHandler
  }
}

/** Returns the response with a body that calls `onEnd` once, when it ends or its client leaves. */
function withEnd(response: Response, onEnd: () => void): Response {
  let hasEnded = false
  const end = () => {
    if (!hasEnded) onEnd()
    hasEnded = true
  }
  const reader = response.body?.getReader()
  if (reader === undefined) {
    end()
    return response
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        end()
        controller.close()
      } catch (error) {
        end()
        controller.error(error)
      }
    },
    cancel(reason) {
      end()
      return reader.cancel(reason)
    },
  })
  return new Response(body, response)
}

/** Returns the deployment's only hub. */
export const hubOf = ({ MCP_HUB }: Pick<Env, 'MCP_HUB'>) => MCP_HUB.get(MCP_HUB.idFromName('hub'))
