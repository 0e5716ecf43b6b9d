import { shorten } from '@agent-trading-service/protocol/shorten'
import {
  type EventStore,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { rpcError } from './errors.ts'

type Transport = WebStandardStreamableHTTPServerTransport

/**
 * The SDK's transport, which also refuses a request whose id another request in flight has: the SDK would send both
 * responses to the stream of the later one and leave the other stream open. It would leave the stream of a cancelled
 * request open too, and the object active: such a request gets an error, which its client ignores.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  private readonly idsInFlight = new Set<RequestId>()

  override async handleRequest(...[request, options]: Parameters<Transport['handleRequest']>): Promise<Response> {
    const messages = [options?.parsedBody ?? []].flat()
    const cancelled = messages.flatMap(message =>
      isJSONRPCNotification(message) && message.method === 'notifications/cancelled'
        ? [message.params?.requestId as RequestId]
        : [],
    )
    const ids = messages.flatMap(message => (isJSONRPCRequest(message) ? message.id : []))
    const repeated = ids.find((id, index) => this.idsInFlight.has(id) || ids.indexOf(id) < index)
    if (repeated !== undefined)
      return rpcError(
        400,
        -32600,
        `Invalid Request: a request with the id ${shorten(JSON.stringify(repeated))} is in flight`,
      )
    for (const id of ids) this.idsInFlight.add(id)
    const response = await super.handleRequest(request, options)
    if (!response.ok) for (const id of ids) this.idsInFlight.delete(id)
    else for (const id of cancelled) if (this.idsInFlight.has(id)) await this.send(cancelledResponse(id))
    return response
  }

  override async send(message: JSONRPCMessage, options?: Parameters<Transport['send']>[1]): Promise<void> {
    if (isJSONRPCResponse(message) && message.id !== undefined) this.idsInFlight.delete(message.id)
    await super.send(message, options)
  }
}

const cancelledResponse = (id: RequestId): JSONRPCMessage => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32000, message: 'Request cancelled' },
})

/** The SDK's name of the stream that a GET opens. */
const LISTEN_STREAM = '_GET_stream'
/** The first message on a stream that cannot resume where its client asks. */
const EVENTS_MISSING: JSONRPCMessage = {
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: {
    level: 'warning',
    logger: 'event-stream',
    data: 'The event after which to resume is not known any more, so this stream starts afresh. Read again what you subscribed to.',
  },
}
const MAX_EVENTS = 500
const DELETE_INTERVAL = 100

type SessionEventRow = { seq: number; stream: string; message: string }

/**
 * The events of one session, replayed to a client that lost its stream. Notifications are stored in the object's
 * SQLite, so that they survive an eviction. Responses are only in memory: a client that misses one can repeat its
 * request, and anyone may make as many requests as their limit allows. After an event that is too old or unknown, the
 * listen stream starts afresh with a notice. Omits the optional getStreamIdForEventId: with it, the SDK rejects a
 * resume (409) while it believes the old connection to be open, and workerd notices a lost client late. Without it, the
 * new connection takes over.
 */
export class SessionEventLog implements EventStore {
  private readonly sql: SqlStorage
  /** Starts at the time, so that no id of an event in memory is used again after an eviction. */
  private lastSeq = Date.now()
  private recent: SessionEventRow[] = []
  private stored = 0

  constructor(sql: SqlStorage) {
    this.sql = sql
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const row = { seq: ++this.lastSeq, stream, message: JSON.stringify(message) }
    this.recent.push(row)
    if (this.recent.length > 2 * MAX_EVENTS) this.recent = this.recent.slice(-MAX_EVENTS)
    // Empty messages only open a stream: they carry nothing but an id.
    if (stream === LISTEN_STREAM && row.message !== EMPTY) this.write(row)
    return `${row.seq}`
  }

  private write({ seq, message }: SessionEventRow) {
    this.sql.exec(SCHEMA)
    this.sql.exec('INSERT INTO event (seq, message) VALUES (?, ?)', seq, message)
    if (++this.stored % DELETE_INTERVAL === 0)
      this.sql.exec(
        `DELETE FROM event WHERE seq <= (SELECT seq FROM event ORDER BY seq DESC LIMIT 1 OFFSET ${MAX_EVENTS})`,
      )
  }

  /** Returns the events that are known, in order. */
  private known(): SessionEventRow[] {
    this.sql.exec(SCHEMA)
    const oldest = this.recent[0]?.seq ?? Number.POSITIVE_INFINITY
    const stored = this.sql
      .exec<{ seq: number; message: string }>('SELECT seq, message FROM event ORDER BY seq')
      .toArray()
    const earlier = stored.filter(({ seq }) => seq < oldest).map(row => ({ ...row, stream: LISTEN_STREAM }))
    return [...earlier, ...this.recent]
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const last = Number(lastEventId)
    const events = this.known()
    const row = events.find(({ seq }) => seq === last)
    if (row === undefined) {
      await send(await this.storeEvent(LISTEN_STREAM, EVENTS_MISSING), EVENTS_MISSING)
      return LISTEN_STREAM
    }
    const missed = events.filter(({ seq, stream, message }) => stream === row.stream && seq > last && message !== EMPTY)
    for (const { seq, message } of missed) await send(`${seq}`, JSON.parse(message) as JSONRPCMessage)
    return row.stream
  }
}

const EMPTY = '{}'
const SCHEMA = 'CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY, message TEXT NOT NULL)'
