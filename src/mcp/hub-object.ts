import { DurableObject } from 'cloudflare:workers'
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import type { ServerFactory } from './server-factory.ts'

const SUBSCRIPTIONS_PER_SESSION = 100

/**
 * Brings a change that any isolate makes to everybody who listens: it holds the listen streams of the 2026 revision,
 * and knows which session of the 2025 revisions has subscribed to what.
 */
export abstract class McpHubObject extends DurableObject<Env> {
  protected abstract readonly createServer: ServerFactory
  private streams: McpHttpHandler | undefined

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

  /** Tells every listener of these resources that they have changed. */
  async resourcesUpdated(uris: readonly string[]): Promise<void> {
    const { MCP_SESSION: sessions } = this.env
    const tell = async (uri: string) => {
      this.handler.notify.resourceUpdated(uri)
      const rows = this.ctx.storage.sql.exec<{ session: string }>('SELECT session FROM subscription WHERE uri = ?', uri)
      await Promise.allSettled(
        rows.toArray().map(({ session }) => sessions.get(sessions.idFromString(session)).resourceUpdated(uri)),
      )
    }
    await Promise.all(uris.map(tell))
  }

  /** Adds a session to the listeners of a resource; false when it has as many subscriptions as it may. */
  async subscribe(session: string, uri: string): Promise<boolean> {
    const { sql } = this.ctx.storage
    const { count } = sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM subscription WHERE session = ?', session)
      .one()
    if (count >= SUBSCRIPTIONS_PER_SESSION) return false
    sql.exec('INSERT OR IGNORE INTO subscription (uri, session) VALUES (?, ?)', uri, session)
    return true
  }

  async unsubscribe(session: string, uri: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ? AND uri = ?', session, uri)
  }

  /** Drops every subscription of a session that has ended. */
  async forget(session: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ?', session)
  }

  private get handler() {
    this.streams ??= createMcpHandler(
      ({ requestInfo }) => this.createServer({ url: new URL(requestInfo?.url ?? 'http://hub') }),
      {
        legacy: 'reject',
      },
    )
    return this.streams
  }
}

/** The deployment's one hub. */
export const hubOf = ({ MCP_HUB }: Pick<Env, 'MCP_HUB'>) => MCP_HUB.get(MCP_HUB.idFromName('hub'))
