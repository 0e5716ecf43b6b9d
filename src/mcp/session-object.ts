import { DurableObject } from 'cloudflare:workers'
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { hubOf } from './hub-object.ts'
import { EventLog } from './resumable-events.ts'
import { type ServerFactory, type Subscriptions, sessionNotFound } from './server-factory.ts'

const IDLE_MS = 30 * 60_000
/** A session that is begun and not used: anybody can begin one, and each takes storage. */
const UNUSED_MS = 2 * 60_000
const TOUCH_EVERY_MS = 60_000

/** What rebuilds a session: the client's initialize request, and the URL that it was posted to. */
type Opening = { url: string; initialize: unknown }

/**
 * One session of the protocol's 2025 revisions. The object's id is the session id, so any isolate anywhere finds it.
 * The transport lives in memory. After an eviction or a deploy it is rebuilt by replaying the client's initialize
 * request through the public API; what was sent on its streams is kept beside it.
 */
export abstract class McpSessionObject extends DurableObject<Env> {
  protected abstract readonly createServer: ServerFactory
  private server: Server | undefined
  private transport: WebStandardStreamableHTTPServerTransport | undefined
  private touchedAt = 0

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    void ctx.blockConcurrencyWhile(async () => {
      const opening = await ctx.storage.get<Opening>('opening')
      if (opening !== undefined) await this.reopen(opening)
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const parsedBody: unknown = request.method === 'POST' ? await request.json() : undefined
    if (this.transport === undefined) return this.begin(request, parsedBody)
    await this.touch()
    // A new listen stream replaces the old one, whose client may be gone without workerd having noticed yet.
    if (request.method === 'GET' && !request.headers.has('last-event-id')) this.transport.closeStandaloneSSEStream()
    return this.transport.handleRequest(request, { parsedBody })
  }

  /** Tells the client that a resource which it subscribed to has changed. */
  async resourceUpdated(uri: string): Promise<void> {
    await this.server?.sendResourceUpdated({ uri })
  }

  override async alarm(): Promise<void> {
    await this.transport?.close()
    await this.end()
  }

  private get id() {
    return this.ctx.id.toString()
  }

  private get subscriptions(): Subscriptions {
    return {
      subscribe: uri => hubOf(this.env).subscribe(this.id, uri),
      unsubscribe: uri => hubOf(this.env).unsubscribe(this.id, uri),
    }
  }

  private async begin(request: Request, initialize: unknown) {
    if (!isInitializeRequest(initialize)) return sessionNotFound()
    this.transport = await this.open(request.url)
    const response = await this.transport.handleRequest(request, { parsedBody: initialize })
    if (response.ok) {
      await this.ctx.storage.put<Opening>('opening', { url: request.url, initialize })
      await this.ctx.storage.setAlarm(Date.now() + UNUSED_MS)
    } else await this.end()
    return response
  }

  private async open(url: string) {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => this.id,
      eventStore: new EventLog(this.ctx.storage.sql),
      retryInterval: 1000,
      onsessionclosed: () => this.end(),
    })
    const served = this.createServer({ url: new URL(url), subscriptions: this.subscriptions })
    this.server = 'server' in served ? served.server : served
    await served.connect(transport)
    return transport
  }

  private async reopen({ url, initialize }: Opening) {
    const transport = await this.open(url)
    const post = async (parsedBody: unknown, headers: Record<string, string>) => {
      const request = new Request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      })
      const response = await transport.handleRequest(request, { parsedBody })
      await response.text()
    }
    await post(initialize, {})
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': this.id })
    this.transport = transport
  }

  private async touch() {
    const now = Date.now()
    if (now - this.touchedAt < TOUCH_EVERY_MS) return
    this.touchedAt = now
    await this.ctx.storage.setAlarm(now + IDLE_MS)
  }

  private async end() {
    this.transport = undefined
    this.server = undefined
    this.touchedAt = 0
    await hubOf(this.env).forget(this.id)
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
  }
}
