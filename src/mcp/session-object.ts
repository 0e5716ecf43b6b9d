import { DurableObject } from 'cloudflare:workers'
import type { Server } from '@modelcontextprotocol/server'
import { createSemaphore } from '../concurrency.ts'
import { parseConfig } from '../config/config.ts'
import { serviceContext } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { clientNetworksOf, type Networks } from '../requests/client-address.ts'
import { noPlace, sessionNotFound } from './errors.ts'
import { createServer, type ServerFactory, type ServerOptions, type Subscriptions } from './server.ts'
import { createSessionIds, initializeRequestOf } from './session-id.ts'
import { SessionEventLog, SessionTransport } from './session-transport.ts'
import { hubOf, withEnd } from './subscription-hub-object.ts'
import { urlOfSelection } from './tools.ts'

const IDLE_TIMEOUT_MS = 30 * 60_000
/** How long after its initialize request a session may be used for the first time. */
const MAX_UNUSED_MS = 2 * 60_000
const TOUCH_INTERVAL_MS = 60_000
/** The reads of a batch are made a few at a time, so that one session cannot fill the queue of everybody. */
const MAX_PARALLEL_READS = 2
const MAX_TURN_WAIT_MS = 1_000

/** The data from which a session is rebuilt. */
type SessionOpening = { url: string; sessionId: string }

/**
 * One session of the protocol's 2025 revisions. The session id contains the object's id, so that every isolate finds
 * it, and what the client asked for in its initialize request, which the route has answered: the object exists from the
 * first request after that on. The transport lives in memory; after an eviction or a deploy it is rebuilt by replaying
 * that initialize request. The events of its streams are stored.
 */
export class McpSessionObject extends DurableObject<Env> {
  private readonly sessionIds = createSessionIds(parseConfig({ ...this.env }).mcpSessionKey)
  private server: Server | undefined
  private transport: SessionTransport | undefined
  private readonly reads = createSemaphore(MAX_PARALLEL_READS)
  private touchedAt = 0
  /** Listen streams and waits. */
  private streams = 0
  private hasEnded = false
  private opened: Promise<Response | undefined> | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    void ctx.blockConcurrencyWhile(async () => {
      this.hasEnded = (await ctx.storage.get('ended')) !== undefined
      const opening = await ctx.storage.get<SessionOpening>('opening')
      if (opening !== undefined) await this.open(opening)
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const parsedBody: unknown = request.method === 'POST' ? await request.json() : undefined
    if (this.transport === undefined) {
      this.opened ??= this.openFirst(request).finally(() => {
        this.opened = undefined
      })
      const refusal = await this.opened
      if (refusal) return refusal.clone()
    }
    await this.touch()
    return request.method === 'GET' ? this.listen(request) : this.respond(request, parsedBody)
  }

  private async respond(request: Request, parsedBody?: unknown): Promise<Response> {
    return (await this.transport?.handleRequest(request, { parsedBody })) ?? sessionNotFound()
  }

  /** Opens a stream for notifications. Without one, a session works as before. */
  private async listen(request: Request): Promise<Response> {
    if (!(await this.takeStream(clientNetworksOf(request.headers))))
      return noPlace(
        'Your network has the maximum number of listen streams in sessions open; read resources instead, or listen without a session',
        120,
      )
    // A new listen stream replaces the old one: its client may have disconnected without workerd noticing yet.
    if (!request.headers.has('last-event-id')) this.transport?.closeStandaloneSSEStream()
    return withEnd(await this.respond(request), () => this.returnStream())
  }

  /** Takes a place for the time in which the object must be active. Returns false if the networks have none left. */
  private async takeStream(networks: Networks): Promise<boolean> {
    if (!(await hubOf(this.env).takeStream(this.id, networks))) return false
    this.streams++
    return true
  }

  private returnStream() {
    if (--this.streams === 0) this.ctx.waitUntil(hubOf(this.env).returnStream(this.id))
  }

  /** Waits in the place of a listen stream, because a wait keeps the object active just as long. */
  private async waitAsStream<Result>(networks: Networks | undefined, wait: () => Promise<Result>): Promise<Result> {
    if (networks === undefined || !(await this.takeStream(networks))) throw refuse('TOO_MANY_STREAMS_OF_CLIENT')
    try {
      return await wait()
    } finally {
      this.returnStream()
    }
  }

  /** Notifies the client that resources it subscribed to have changed. */
  async resourcesUpdated(uris: readonly string[]): Promise<void> {
    for (const uri of uris) await this.server?.sendResourceUpdated({ uri })
  }

  /** Ends the session, because another client needs its place. */
  async expire(): Promise<void> {
    if (this.hasEnded) return
    await this.transport?.close()
    await this.end()
  }

  override async alarm(): Promise<void> {
    if (this.hasEnded) return this.ctx.storage.deleteAll()
    await this.expire()
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

  /** Opens a session that was not used before. Returns a refusal if it cannot be. */
  private async openFirst(request: Request): Promise<Response | undefined> {
    const sessionId = request.headers.get('mcp-session-id') ?? ''
    const { objectId, issuedAt = 0 } = this.sessionIds.parse(sessionId) ?? {}
    if (this.hasEnded || objectId !== this.id || Date.now() - issuedAt > MAX_UNUSED_MS) return sessionNotFound()
    if (!(await hubOf(this.env).admit(this.id, clientNetworksOf(request.headers))))
      return noPlace('Your network has the maximum number of sessions open; unused ones end after 30 minutes', 120)
    const opening = { url: request.url, sessionId }
    await this.open(opening)
    await this.ctx.storage.put<SessionOpening>('opening', opening)
    return undefined
  }

  /** Creates the server of the session. The Worker of the conformance suite creates another one. */
  protected createServer(options: ServerOptions): ReturnType<ServerFactory> {
    return createServer(serviceContext(), options)
  }

  private async open({ url, sessionId }: SessionOpening) {
    const opened = this.sessionIds.parse(sessionId)
    if (opened === undefined) return
    const transport = new SessionTransport({
      sessionIdGenerator: () => sessionId,
      eventStore: new SessionEventLog(this.ctx.storage.sql),
      retryInterval: 1000,
      onsessionclosed: () => this.end(),
    })
    const created = this.createServer({
      url: urlOfSelection(url, opened.selection),
      subscriptions: this.subscriptions,
      readInTurn: read => this.readInTurn(read),
      waitAsStream: (networks, wait) => this.waitAsStream(networks, wait),
    })
    this.server = 'server' in created ? created.server : created
    await created.connect(transport)
    const post = async (parsedBody: unknown, headers: Record<string, string>) => {
      const request = new Request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      })
      const response = await transport.handleRequest(request, { parsedBody })
      await response.text()
    }
    await post(initializeRequestOf(opened), {})
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': sessionId })
    this.transport = transport
  }

  /**
   * Makes a read once few enough others are made. Nothing waits longer than a second, so that slow reads stop no
   * others.
   */
  private async readInTurn<Result>(read: () => Promise<Result>): Promise<Result> {
    const isHeld = await this.reads.acquire({ deadline: Date.now() + MAX_TURN_WAIT_MS })
    try {
      return await read()
    } finally {
      if (isHeld) this.reads.release()
    }
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
    this.hasEnded = true
    await hubOf(this.env).forget(this.id)
    const { storage } = this.ctx
    await storage.deleteAlarm()
    await storage.deleteAll()
    // Until its id is too old to open a session, the object remembers that this one has ended.
    await storage.put('ended', true)
    await storage.setAlarm(Date.now() + MAX_UNUSED_MS)
  }
}
