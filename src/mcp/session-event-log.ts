import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

const MAX_EVENTS = 500
const MAX_UNWRITTEN = 64

type SessionEventRow = { seq: number; stream: string; message: string }

/**
 * The events of one session in its object's SQLite, replayed to a client that lost its stream. They are written together, once
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
    if (row === undefined) throw new Error(`There is no event ${lastEventId}`)
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
