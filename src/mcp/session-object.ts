import { DurableObject } from 'cloudflare:workers'
import { type InitializeRequest, isInitializeRequest, type Server } from '@modelcontextprotocol/server'
import { sessionNotFound } from './json-rpc-errors.ts'
import { createParallelLimit } from './parallel-limit.ts'
import type { ServerFactory, Subscriptions } from './server-types.ts'
import { SessionEventLog } from './session-event-log.ts'
import { SessionTransport } from './session-transport.ts'
import { hubOf } from './subscription-hub-object.ts'

const IDLE_TIMEOUT_MS = 30 * 60_000
/** The timeout of a session that was never used after initialize. Short, because anybody can open sessions and each uses storage. */
const UNUSED_TIMEOUT_MS = 2 * 60_000
const TOUCH_INTERVAL_MS = 60_000
/** The reads of a batch are made a few at a time, so that one session cannot fill the queue of everybody. */
const MAX_PARALLEL_READS = 2
const MAX_TURN_WAIT_MS = 1_000

/** What a session is rebuilt from: the client's initialize request and its URL. */
type SessionOpening = { url: string; initialize: InitializeRequest }

/** Returns an initialize request with what the server uses of it: clients may add icons and descriptions of any size. */
function essentialsOf({ method, params }: InitializeRequest) {
  const { protocolVersion, capabilities, clientInfo } = params
  const { name, version } = clientInfo
  return {
    jsonrpc: '2.0',
    id: 0,
    method,
    params: { protocolVersion, capabilities, clientInfo: { name, version } },
  } as const
}

/**
 * One session of the protocol's 2025 revisions. The object's id is the session id, so that every isolate finds it. The
 * transport lives in memory; after an eviction or a deploy it is rebuilt by replaying the client's initialize request.
 * The events of its streams are stored.
 */
export abstract class McpSessionObject extends DurableObject<Env> {
  protected abstract readonly createServer: ServerFactory
  private server: Server | undefined
  private transport: SessionTransport | undefined
  private readonly readInTurn = createParallelLimit(MAX_PARALLEL_READS, MAX_TURN_WAIT_MS)
  private touchedAt = 0

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    void ctx.blockConcurrencyWhile(async () => {
      const opening = await ctx.storage.get<SessionOpening>('opening')
      if (opening !== undefined) await this.reopen(opening)
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const parsedBody: unknown = request.method === 'POST' ? await request.json() : undefined
    if (this.transport === undefined) return this.initialize(request, parsedBody)
    await this.touch()
    // A new listen stream replaces the old one: its client may have disconnected without workerd noticing yet.
    if (request.method === 'GET' && !request.headers.has('last-event-id')) this.transport.closeStandaloneSSEStream()
    return this.transport.handleRequest(request, { parsedBody })
  }

  /** Notifies the client that a resource it subscribed to has changed. */
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

  private async initialize(request: Request, parsedBody: unknown) {
    if (!isInitializeRequest(parsedBody)) return sessionNotFound()
    this.transport = await this.open(request.url)
    const response = await this.transport.handleRequest(request, { parsedBody })
    if (response.ok) {
      await this.ctx.storage.put<SessionOpening>('opening', {
        url: request.url,
        initialize: essentialsOf(parsedBody),
      })
      await this.ctx.storage.setAlarm(Date.now() + UNUSED_TIMEOUT_MS)
    } else await this.end()
    return response
  }

  private async open(url: string) {
    const transport = new SessionTransport({
      sessionIdGenerator: () => this.id,
      eventStore: new SessionEventLog(this.ctx.storage.sql),
      retryInterval: 1000,
      onsessionclosed: () => this.end(),
    })
    const created = this.createServer({
      url: new URL(url),
      subscriptions: this.subscriptions,
      readInTurn: this.readInTurn,
    })
    this.server = 'server' in created ? created.server : created
    await created.connect(transport)
    return transport
  }

  private async reopen({ url, initialize }: SessionOpening) {
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
    if (now - this.touchedAt < TOUCH_INTERVAL_MS) return
    this.touchedAt = now
    await this.ctx.storage.setAlarm(now + IDLE_TIMEOUT_MS)
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
