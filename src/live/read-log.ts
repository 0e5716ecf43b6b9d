import { dataFor, type EventFilter, type LoggedEvent } from './event.ts'
import type { EventLog, LogCursor } from './store.ts'

/** An event as a filter shows it, and the cursor after it. */
export type SelectedEvent = Pick<LoggedEvent, 'id' | 'type' | 'data' | 'loggedAt'> & { cursor: LogCursor }

/** The result of a read after a cursor. */
export type LogPage =
  /** The next events in order. `cursor` is the position after them; `isComplete` is false if more follow. */
  | { kind: 'events'; events: SelectedEvent[]; cursor: LogCursor; isComplete: boolean }
  /**
   * The log no longer has the cursor's row: events were deleted, or the log was replaced. Reading continues at
   * `cursor`.
   */
  | { kind: 'gap'; cursor: LogCursor; loggedAt: number }

/** Reads a filter's events after a cursor, like a stream that resumes there. */
export function readLog(eventLog: EventLog, filter: EventFilter, cursor: LogCursor, limit: number): LogPage {
  const oldest = eventLog.oldest()
  if (oldest === undefined) return { kind: 'events', events: [], cursor, isComplete: true }
  const isFromStart = cursor.seq === 0 && oldest.seq === 1
  if (!isFromStart && eventLog.idAt(cursor.seq) !== cursor.id)
    return { kind: 'gap', cursor: { seq: oldest.seq, id: oldest.id }, loggedAt: oldest.loggedAt }
  const { events, through } = eventLog.page(filter, cursor.seq, limit)
  return {
    kind: 'events',
    events: events.map(event => ({
      id: event.id,
      type: event.type,
      data: dataFor(event, filter),
      loggedAt: event.loggedAt,
      cursor: { seq: event.seq, id: event.id },
    })),
    cursor: { seq: through, id: eventLog.idAt(through) ?? cursor.id },
    isComplete: events.length < limit,
  }
}
