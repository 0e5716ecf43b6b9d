import { createKeyedQueue, createSemaphore, sleep, withDeadline } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import { type EventFilter, isSelected, type LoggedEvent } from './event.ts'
import type { LogCursor } from './store.ts'

const MAX_EVENTS = 512
/** Characters of JSON. */
const MAX_DATA = 1024 * 1024

/** A filter's next events, and the row up to which the list is complete. */
type EventPage = { events: LoggedEvent[]; through: number }

/** Reads all next events after a row. Returns undefined if it fails. */
type ReadAll = (after: number, limit: number) => Promise<LoggedEvent[] | undefined>

export type LogWindow = ReturnType<typeof createLogWindow>

/** Holds the shard's copy of the newest events of the log, without gaps, and how far the shard has read the log. */
export function createLogWindow() {
  let newest: LogCursor | undefined
  /** The row before the oldest event. */
  let before = 0
  let events: LoggedEvent[] = []
  let filling: Promise<void> | undefined

  function startAt(cursor: LogCursor) {
    newest = cursor
    before = cursor.seq
    events = []
    filling = undefined
  }

  function dropOldest() {
    let dataLength = events.reduce((sum, { data }) => sum + data.length, 0)
    let dropped = 0
    while (events.length - dropped > MAX_EVENTS || dataLength > MAX_DATA)
      dataLength -= events[dropped++]?.data.length ?? 0
    before = events[dropped - 1]?.seq ?? before
    events.splice(0, dropped)
  }

  async function readOlder(read: ReadAll) {
    const end = before
    const start = Math.max(0, end - (MAX_EVENTS - events.length))
    if (start === end) return
    const older = await read(start, end - start)
    if (older === undefined || before !== end) return // the window may have moved on
    events.unshift(...older.filter(({ seq }) => seq <= end))
    before = start
    dropOldest()
  }

  return {
    /** Returns the row up to which the shard has read the log; undefined if it does not follow the log. */
    newest: () => newest,

    startAt,

    /** Drops everything: no stream is open. */
    stop() {
      startAt({ seq: 0, id: '' })
      newest = undefined
    },

    /** Adds further events, and returns the new ones. `through` is at least the row of the last event. */
    append(next: readonly LoggedEvent[], through: LogCursor): LoggedEvent[] {
      const reached = newest?.seq ?? 0
      const added = next.filter(({ seq }) => seq > reached)
      if (through.seq > reached) newest = through
      events.push(...added)
      dropOldest()
      return added
    },

    /** Reads the events before the oldest one, as many as fit. Does so once after each start. */
    fill(read: ReadAll): Promise<void> {
      filling ??= readOlder(read)
      return filling
    },

    /** Returns a filter's next events after a row; undefined if they are older than the window. */
    page(filter: EventFilter, after: number, limit: number): EventPage | undefined {
      if (newest === undefined || after < before) return undefined
      const following = events.filter(
        event => event.seq > after && (event.type === 'reorg' || isSelected(filter, event)),
      )
      const page = following.slice(0, limit)
      return { events: page, through: page.length < following.length ? (page.at(-1)?.seq ?? after) : newest.seq }
    },
  }
}

/** How many reads of one shard the log works on at a time, however many streams resume. */
const MAX_PARALLEL_READS = 8
const READ_TIMEOUT_MS = 10_000
/**
 * How long a client waits from one page of the log to the next, in all of its streams together: opening them is free.
 */
const PAGE_INTERVAL_MS = 100

export type ReadMissedEvents = ReturnType<typeof createMissedEventsReader>

/**
 * Returns a function that reads a filter's events for a stream of a client. The first call fills the window, so streams
 * that resume after a restart share one read of the log. What is older, each client reads at a bounded pace. Throws
 * what `readLog` throws.
 */
export function createMissedEventsReader(
  window: LogWindow,
  readLog: (filter: EventFilter | undefined, after: number, limit: number) => Promise<EventPage>,
) {
  const reads = createSemaphore(MAX_PARALLEL_READS)
  const inOrder = createKeyedQueue<string>()

  function readInTime(...query: Parameters<typeof readLog>): Promise<EventPage> {
    const timeout = () => {
      throw new Error('The event log did not respond in time.')
    }
    return withDeadline(readLog(...query), Date.now() + READ_TIMEOUT_MS, timeout)
  }

  async function readInTurn(...query: Parameters<typeof readLog>): Promise<EventPage> {
    await reads.acquire()
    try {
      return await readInTime(...query)
    } finally {
      reads.release()
    }
  }

  /** Returns undefined if the log cannot be read; then each stream reads for itself. */
  async function readAll(after: number, limit: number): Promise<LoggedEvent[] | undefined> {
    try {
      return (await readInTime(undefined, after, limit)).events
    } catch (error) {
      logFailure('event streams failure', error)
      return undefined
    }
  }

  return async (client: string, filter: EventFilter, after: number, limit: number): Promise<EventPage> => {
    await window.fill(readAll)
    const page = window.page(filter, after, limit)
    if (page !== undefined) return page
    const read = inOrder(client, () => readInTurn(filter, after, limit))
    void inOrder(client, () => sleep(PAGE_INTERVAL_MS))
    return read
  }
}
