import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

const KEPT_EVENTS = 500
const TRIM_EVERY = 64

type Row = { seq: number; stream: string; message: string }

/**
 * The event log of one session in its object's SQLite: what a client that lost its stream is sent again.
 * It leaves out the optional getStreamIdForEventId: with it the SDK refuses a resume (409) for as long as it takes
 * the old connection for open, and workerd learns late of a lost client; without it the new connection takes over.
 */
export class EventLog implements EventStore {
  private readonly sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, message TEXT NOT NULL)',
    )
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const { seq } = this.sql
      .exec<Pick<Row, 'seq'>>(
        'INSERT INTO event (stream, message) VALUES (?, ?) RETURNING seq',
        stream,
        JSON.stringify(message),
      )
      .one()
    if (seq % TRIM_EVERY === 0) this.sql.exec('DELETE FROM event WHERE seq <= ?', seq - KEPT_EVENTS)
    return `${seq}`
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const last = Number(lastEventId)
    const [row] = this.sql.exec<Pick<Row, 'stream'>>('SELECT stream FROM event WHERE seq = ?', last).toArray()
    if (row === undefined) throw new Error(`There is no event ${lastEventId}`)
    // The empty messages only open a stream: they carry an id and nothing else.
    const missed = this.sql
      .exec<Row>("SELECT * FROM event WHERE stream = ? AND seq > ? AND message <> '{}' ORDER BY seq", row.stream, last)
      .toArray()
    for (const { seq, message } of missed) await send(`${seq}`, JSON.parse(message) as JSONRPCMessage)
    return row.stream
  }
}
