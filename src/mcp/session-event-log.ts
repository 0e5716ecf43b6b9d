import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

const MAX_EVENTS = 500
const TRIM_INTERVAL = 64

type SessionEventRow = { seq: number; stream: string; message: string }

/**
 * The events of one session in its object's SQLite, replayed to a client that lost its stream. Omits the optional
 * getStreamIdForEventId: with it, the SDK rejects a resume (409) while it believes the old connection to be open, and
 * workerd notices a lost client late. Without it, the new connection takes over.
 */
export class SessionEventLog implements EventStore {
  private readonly sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, message TEXT NOT NULL)',
    )
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const { seq } = this.sql
      .exec<Pick<SessionEventRow, 'seq'>>(
        'INSERT INTO event (stream, message) VALUES (?, ?) RETURNING seq',
        stream,
        JSON.stringify(message),
      )
      .one()
    if (seq % TRIM_INTERVAL === 0) this.sql.exec('DELETE FROM event WHERE seq <= ?', seq - MAX_EVENTS)
    return `${seq}`
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
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
