import { DurableObject } from 'cloudflare:workers'
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server'
import { singleFlightAgain } from '../concurrency.ts'
import { parseConfig } from '../config/config.ts'
import { serviceContext } from '../context.ts'
import { createNetworkCounts } from '../limits/network-counts.ts'
import { eventLogOf } from '../live/client.ts'
import { clientNetworksOf, type Networks } from '../requests/client-address.ts'
import { noPlace } from './errors.ts'
import { agentUris, MAX_FOLLOWED_RESOURCES } from './resources.ts'
import { createServer, type ServerFactory, type ServerOptions } from './server.ts'

/** One change of an agent calls the object of each session that follows it. */
const MAX_SESSIONS_PER_RESOURCE = 100
const SESSIONS = { perAddress: 200, total: 10_000 }
const SUBSCRIPTIONS = { perAddress: 1_000, total: 100_000 }
const LISTEN_STREAMS = { perAddress: 100, total: 5_000 }
/**
 * The platform bills the object of a session for as long as its listen stream is open; those above are all in the hub.
 */
const SESSION_STREAMS = { perAddress: 4, total: 5_000 }
/** How many sessions are notified at a time. */
const SESSIONS_PER_PAGE = 20
/** A session that did not tell its end is forgotten after this long. */
const MAX_SESSION_AGE_MS = 86_400_000

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS subscription (uri TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (uri, session)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS subscription_session ON subscription (session);
  -- networks is JSON, the narrowest first; widest is the last of them.
  CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, networks TEXT NOT NULL, widest TEXT NOT NULL, opened_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS session_widest ON session (widest, opened_at);
`

/**
 * Delivers resource updates to all subscribers. Holds the listen streams of the protocol's 2026 revision, and the
 * subscriptions of the sessions of its 2025 revisions. Where there is no place left, a client whose networks hold fewer
 * than others gets one of theirs, so that no crowd of sessions shuts out the next client.
 */
export class McpHubObject extends DurableObject<Env> {
  private readonly config = parseConfig({ ...this.env })
  private readonly sessions = createNetworkCounts(SESSIONS)
  private readonly subscriptions = createNetworkCounts(SUBSCRIPTIONS)
  private readonly listenStreams = createNetworkCounts(LISTEN_STREAMS)
  /** By the widest network of their clients, the oldest first. */
  private readonly endsOfStreams = new Map<string, Set<() => void>>()
  private readonly sessionStreams = createNetworkCounts(SESSION_STREAMS)
  private readonly streamingSessions = new Map<string, Networks>()
  private streamHandler: McpHttpHandler | undefined
  private readonly changed = new Set<string>()
  private readonly notifyChanged = singleFlightAgain(() => this.notifySubscribers())

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    ctx.storage.sql.exec(SCHEMA)
    const held = ctx.storage.sql.exec<{ networks: string; subscriptions: number }>(
      'SELECT networks, (SELECT count(*) FROM subscription WHERE session = session.id) AS subscriptions FROM session',
    )
    for (const { networks, subscriptions } of held) {
      this.sessions.add(JSON.parse(networks))
      for (let count = 0; count < subscriptions; count++) this.subscriptions.add(JSON.parse(networks))
    }
  }

  /** Opens a listen stream. One address cannot take all of them. */
  override async fetch(request: Request): Promise<Response> {
    const networks = clientNetworksOf(request.headers)
    const given = new AbortController()
    const release = this.holdListenStream(networks, () => given.abort())
    if (release === undefined)
      return noPlace(
        `${this.listenStreams.hasRoom(networks) ? 'The service' : 'Your address'} has the maximum number of listen streams open`,
        15,
      )
    this.watchEvents()
    try {
      return withEnd(await this.handler.fetch(request), release, given.signal)
    } catch (error) {
      release()
      throw error
    }
  }

  /**
   * Takes a place for a listen stream. Where there is none left, the network that holds most gives back its oldest one,
   * whose `end` is called. Returns what releases the place; undefined if there is none.
   */
  holdListenStream(networks: Networks, end: () => void): (() => void) | undefined {
    const streams = this.listenStreams
    if (!streams.hasRoom(networks)) return undefined
    if (streams.isFull()) {
      const [oldest] = this.endsOfStreams.get(streams.holderOfMost(networks) ?? '') ?? []
      if (oldest === undefined) return undefined
      oldest()
    }
    const widest = networks.at(-1) ?? ''
    const ends = this.endsOfStreams.get(widest) ?? new Set()
    const release = () => {
      if (!ends.delete(giveBack)) return
      if (ends.size === 0) this.endsOfStreams.delete(widest)
      streams.remove(networks)
    }
    const giveBack = () => {
      release()
      end()
    }
    this.endsOfStreams.set(widest, ends.add(giveBack))
    streams.add(networks)
    return release
  }

  /**
   * Counts a new session of a client. Returns false if its networks have reached their maximum, or hold most of all.
   */
  async admit(session: string, networks: Networks): Promise<boolean> {
    const { sql } = this.ctx.storage
    const widest = networks.at(-1) ?? ''
    const tooOld = sql.exec<{ id: string }>(
      'SELECT id FROM session WHERE widest = ? AND opened_at < ?',
      widest,
      Date.now() - MAX_SESSION_AGE_MS,
    )
    for (const { id } of tooOld.toArray()) await this.forget(id)
    if (!this.sessions.hasRoom(networks)) return false
    if (this.sessions.isFull()) {
      const holder = this.sessions.holderOfMost(networks)
      if (holder === undefined) return false
      await this.endOldest(holder)
    }
    sql.exec('INSERT INTO session VALUES (?, ?, ?, ?)', session, JSON.stringify(networks), widest, Date.now())
    this.sessions.add(networks)
    return true
  }

  /** Notifies the subscribers of all resources of these agents. */
  agentsChanged(agentIds: readonly number[]): Promise<void> {
    return this.resourcesUpdated(agentIds.flatMap(agentUris))
  }

  /** Notifies every subscriber of these resources. Changes during a notification are delivered together after it. */
  resourcesUpdated(uris: readonly string[]): Promise<void> {
    for (const uri of uris) this.changed.add(uri)
    return this.notifyChanged()
  }

  private async notifySubscribers(): Promise<void> {
    const uris = [...this.changed]
    this.changed.clear()
    const urisOfSession = new Map<string, string[]>()
    for (const uri of uris) {
      this.handler.notify.resourceUpdated(uri)
      for (const { session } of this.subscribersOf(uri))
        urisOfSession.set(session, [...(urisOfSession.get(session) ?? []), uri])
    }
    const calls = [...urisOfSession]
    while (calls.length > 0)
      await Promise.allSettled(
        calls.splice(0, SESSIONS_PER_PAGE).map(([session, uris]) => this.objectOf(session).resourcesUpdated(uris)),
      )
  }

  /**
   * Subscribes a session to a resource. Returns false if the session, its networks or the resource have their maximum.
   */
  async subscribe(session: string, uri: string): Promise<boolean> {
    const { sql } = this.ctx.storage
    const networks = this.networksOf(session)
    if (networks === undefined) return false
    const subscribed = sql
      .exec<{ uri: string }>('SELECT uri FROM subscription WHERE session = ?', session)
      .toArray()
      .map(({ uri }) => uri)
    if (subscribed.includes(uri)) return true
    const isFull = subscribed.length >= MAX_FOLLOWED_RESOURCES || this.subscriptions.isFull()
    if (isFull || !this.subscriptions.hasRoom(networks)) return false
    if (!(await this.makeRoomAt(uri, networks))) return false
    sql.exec('INSERT INTO subscription (uri, session) VALUES (?, ?)', uri, session)
    this.subscriptions.add(networks)
    this.watchEvents()
    return true
  }

  /** Returns whether a client waits for changes of resources. */
  hasSubscribers(): boolean {
    return this.listenStreams.size() > 0 || this.subscriptions.size() > 0
  }

  /** Has the chain followed closely from now on. The cron trigger renews it. */
  private watchEvents() {
    const { chain } = this.config
    const watched = chain && eventLogOf(this.env.EVENT_STREAMS, chain).watchForSubscribers()
    this.ctx.waitUntil(Promise.resolve(watched).catch(() => {}))
  }

  /** Makes room for another subscriber of a resource, in place of one of the network that has most of them. */
  private async makeRoomAt(uri: string, networks: Networks): Promise<boolean> {
    const subscribers = this.subscribersOf(uri)
    if (subscribers.length < MAX_SESSIONS_PER_RESOURCE) return true
    const counts = createNetworkCounts(SUBSCRIPTIONS)
    for (const { networks } of subscribers) counts.add(JSON.parse(networks))
    const holder = counts.holderOfMost(networks)
    const given = subscribers.find(({ widest }) => widest === holder)
    if (given === undefined) return false
    await this.unsubscribe(given.session, uri)
    return true
  }

  async unsubscribe(session: string, uri: string): Promise<void> {
    const [known] = this.subscribersOf(uri).filter(subscriber => subscriber.session === session)
    if (known === undefined) return
    this.ctx.storage.sql.exec('DELETE FROM subscription WHERE session = ? AND uri = ?', session, uri)
    this.subscriptions.remove(JSON.parse(known.networks))
  }

  /** Takes a place for the listen stream of a session. Returns false if its networks have none left. */
  async takeStream(session: string, networks: Networks): Promise<boolean> {
    if (this.streamingSessions.has(session)) return true
    if (this.sessionStreams.isFull() || !this.sessionStreams.hasRoom(networks)) return false
    this.sessionStreams.add(networks)
    this.streamingSessions.set(session, networks)
    return true
  }

  /** Returns the place of a session's listen stream. */
  async returnStream(session: string): Promise<void> {
    const networks = this.streamingSessions.get(session)
    if (networks && this.streamingSessions.delete(session)) this.sessionStreams.remove(networks)
  }

  /** Deletes a session that has ended, with every subscription. */
  async forget(session: string): Promise<void> {
    await this.returnStream(session)
    const { sql } = this.ctx.storage
    const networks = this.networksOf(session)
    if (networks === undefined) return
    const { count } = sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM subscription WHERE session = ?', session)
      .one()
    sql.exec('DELETE FROM subscription WHERE session = ?', session)
    for (let deleted = 0; deleted < count; deleted++) this.subscriptions.remove(networks)
    sql.exec('DELETE FROM session WHERE id = ?', session)
    this.sessions.remove(networks)
  }

  /** Returns the networks of a session's client; undefined if there is no such session. */
  private networksOf(session: string): Networks | undefined {
    const { sql } = this.ctx.storage
    const [known] = sql.exec<{ networks: string }>('SELECT networks FROM session WHERE id = ?', session).toArray()
    return known && JSON.parse(known.networks)
  }

  private subscribersOf(uri: string) {
    return this.ctx.storage.sql
      .exec<{ session: string; networks: string; widest: string }>(
        'SELECT session, networks, widest FROM subscription JOIN session ON session.id = subscription.session WHERE uri = ?',
        uri,
      )
      .toArray()
  }

  /** Ends the oldest session of a network. */
  private async endOldest(widest: string): Promise<void> {
    const [oldest] = this.ctx.storage.sql
      .exec<{ id: string }>('SELECT id FROM session WHERE widest = ? ORDER BY opened_at LIMIT 1', widest)
      .toArray()
    if (oldest === undefined) return
    await this.forget(oldest.id)
    this.ctx.waitUntil(Promise.resolve(this.objectOf(oldest.id).expire()).catch(() => {}))
  }

  private objectOf(session: string) {
    const { MCP_SESSION: sessions } = this.env
    return sessions.get(sessions.idFromString(session))
  }

  /** Creates the server of a listen stream. The Worker of the conformance suite creates another one. */
  protected createServer(options: ServerOptions): ReturnType<ServerFactory> {
    return createServer(serviceContext(), options)
  }

  private get handler() {
    this.streamHandler ??= createMcpHandler(
      ({ requestInfo }) => this.createServer({ url: new URL(requestInfo?.url ?? 'http://hub') }),
      { legacy: 'reject' },
    )
    return this.streamHandler
  }
}

/** Returns the response with a body that calls `onEnd` once, when it ends, its client leaves or `ended` aborts it. */
export function withEnd(response: Response, onEnd: () => void, ended?: AbortSignal): Response {
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
    start(controller) {
      ended?.addEventListener('abort', () => {
        controller.close()
        reader.cancel().catch(() => {})
      })
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (ended?.aborted) return
        if (!done) return controller.enqueue(value)
        end()
        controller.close()
      } catch (error) {
        end()
        if (!ended?.aborted) controller.error(error)
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
