import { createSemaphore, withDeadline } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import type { EventFilter, LoggedEvent } from './event.ts'
import type { EventPage, LogWindow } from './newest-events.ts'

/** How many reads of one shard the log works on at a time, however many streams resume. */
const MAX_PARALLEL_READS = 8
const READ_TIMEOUT_MS = 10_000

export type ReadMissedEvents = ReturnType<typeof createMissedEventsReader>

/**
 * Returns a function that reads a filter's events which are older than the window. The first call fills the window, so
 * streams that resume after a restart share one read of the log. Throws what `readLog` throws.
 */
export function createMissedEventsReader(
  window: LogWindow,
  readLog: (filter: EventFilter, after: number, limit: number) => Promise<EventPage>,
) {
  const reads = createSemaphore(MAX_PARALLEL_READS)

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
      return (await readInTime({}, after, limit)).events
    } catch (error) {
      logFailure('event streams failure', error)
      return undefined
    }
  }

  return async (filter: EventFilter, after: number, limit: number): Promise<EventPage> => {
    await window.fill(readAll)
    return window.page(filter, after, limit) ?? readInTurn(filter, after, limit)
  }
}
