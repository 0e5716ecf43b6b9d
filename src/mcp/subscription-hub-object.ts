import { DurableObject } from 'cloudflare:workers'
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import type { ServerFactory } from './server-types.ts'

const MAX_SUBSCRIPTIONS_PER_SESSION = 100

/**
 * Delivers resource updates to all subscribers. Holds the listen streams of the protocol's 2026 revision, and the
 * subscriptions of the sessions of its 2025 revisions.
 */
export abstract class McpHubObject extends DurableObject<Env> {
  protected abstract readonly createServer: ServerFactory
  private streamHandler: McpHttpHandler | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    ctx.storage.sql.exec(
      'CREATE TABLE IF NOT EXISTS subscription (uri TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (uri, session)) WITHOUT ROWID',
    )
    ctx.storage.sql.exec('CREATE INDEX IF NOT EXISTS subscription_session ON subscription (session)')
  }

  override fetch(request: Request): Promise<Response> {
    return this.handler.fetch(request)
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
    return true
  }

  async unsubscribe(session: string, uri: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ? AND uri = ?', session, uri)
  }

  /** Deletes every subscription of a session that has ended. */
  async forget(session: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ?', session)
  }

  private get handler() {
    this.streamHandler ??= createMcpHandler(
      ({ requestInfo }) => this.createServer({ url: new URL(requestInfo?.url ?? 'http://hub') }),
      { legacy: 'reject' },
    )
    return this.streamHandler
  }
}

/** Returns the deployment's only hub. */
export const hubOf = ({ MCP_HUB }: Pick<Env, 'MCP_HUB'>) => MCP_HUB.get(MCP_HUB.idFromName('hub'))
