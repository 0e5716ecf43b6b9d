import { shorten } from '@agent-trading-service/protocol/shorten'
import {
  type EventStore,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
  type WebStandardStreamableHTTPServerTransportOptions,
} from '@modelcontextprotocol/server'
import { rpcError } from './errors.ts'

type Transport = WebStandardStreamableHTTPServerTransport

/**
 * The SDK's transport, which also refuses a request whose id another request in flight has: the SDK would send both
 * responses to the stream of the later one and leave the other stream open.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  private readonly idsInFlight = new Set<RequestId>()
  private readonly onIdle: (() => void) | undefined

  /** `onIdle` is called with each message that leaves no request in flight. */
  constructor({ onIdle, ...options }: WebStandardStreamableHTTPServerTransportOptions & { onIdle?: () => void }) {
    super(options)
    this.onIdle = onIdle
  }

  override async handleRequest(...[request, options]: Parameters<Transport['handleRequest']>): Promise<Response> {
    const messages = [options?.parsedBody ?? []].flat()
    for (const message of messages) {
      const isCancelled = isJSONRPCNotification(message) && message.method === 'notifications/cancelled'
      if (isCancelled) this.idsInFlight.delete(message.params?.requestId as RequestId)
    }
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
    return response
  }

  override async send(message: JSONRPCMessage, options?: Parameters<Transport['send']>[1]): Promise<void> {
    if (isJSONRPCResponse(message) && message.id !== undefined) this.idsInFlight.delete(message.id)
    await super.send(message, options)
    if (this.idsInFlight.size === 0) this.onIdle?.()
  }
}

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
const MAX_UNWRITTEN = 64

type SessionEventRow = { seq: number; stream: string; message: string }

/**
 * The events of one session in its object's SQLite, replayed to a client that lost its stream. After an event that is too old or
 * unknown, the listen stream starts afresh with a notice. They are written together, once
 * no request is in flight, because each write waits for the disk: a batch of reads costs one. Omits the optional
 * getStreamIdForEventId: with it, the SDK rejects a resume (409) while it believes the old connection to be open, and
 * workerd notices a lost client late. Without it, the new connection takes over.
 */
export class SessionEventLog implements EventStore {
  private readonly sql: SqlStorage
  private lastSeq: number
  private unwritten: SessionEventRow[] = []

  constructor(sql: SqlStorage) {
    this.sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, message TEXT NOT NULL)',
    )
    this.lastSeq = sql.exec<{ seq: number | null }>('SELECT max(seq) AS seq FROM event').one().seq ?? 0
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const seq = ++this.lastSeq
    this.unwritten.push({ seq, stream, message: JSON.stringify(message) })
    if (this.unwritten.length >= MAX_UNWRITTEN) this.flush()
    return `${seq}`
  }

  /** Writes the events that are only in memory. */
  flush(): void {
    if (this.unwritten.length === 0) return
    for (const { seq, stream, message } of this.unwritten)
      this.sql.exec('INSERT INTO event (seq, stream, message) VALUES (?, ?, ?)', seq, stream, message)
    this.sql.exec('DELETE FROM event WHERE seq <= ?', this.lastSeq - MAX_EVENTS)
    this.unwritten = []
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    this.flush()
    const last = Number(lastEventId)
    const [row] = this.sql
      .exec<Pick<SessionEventRow, 'stream'>>('SELECT stream FROM event WHERE seq = ?', last)
      .toArray()
    if (row === undefined) {
      await send(await this.storeEvent(LISTEN_STREAM, EVENTS_MISSING), EVENTS_MISSING)
      return LISTEN_STREAM
    }
    // Empty messages only open a stream: they carry nothing but an id.
    const missed = this.sql
      .exec<SessionEventRow>(
        "SELECT * FROM event WHERE stream = ? AND seq > ? AND message <> '{}' ORDER BY seq",
        row.stream,
        last,
      )
      .toArray()
    for (const { seq, message } of missed) await send(`${seq}`, JSON.parse(message) as JSONRPCMessage)
    return row.stream
  }
}
