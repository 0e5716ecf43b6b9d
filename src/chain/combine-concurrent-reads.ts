import { waitUntil } from 'cloudflare:workers'
import { sleep } from '../concurrency.ts'

const MAX_READS_TOGETHER = 64
/** How long a request waits for the read in progress. */
const MAX_TURN_MS = 10
/** How long a request waits for another request to read its result. The other request may have failed. */
const MAX_SHARED_READ_MS = 1_000
/** How often a request checks for its result once the read should have ended, and the longest time before that. */
const CHECK_MS = 2
const MAX_PAUSE_MS = 50

/**
 * A read that waits for its turn (`queued`) or for its result (`reading`), and since when. Times are epoch
 * milliseconds.
 */
type SharedRead<Query, Result> = {
  query: Query
  queuedAt: number
  readSince?: number
  state: 'queued' | 'reading' | 'failed' | { result: Result }
}

/**
 * Returns a function that reads for one request, together with other waiting requests of this isolate. A read starts at
 * once if none is in progress. Requests that arrive during a read share the next one, which one of them makes; if it
 * fails, each reads by itself. A result is never older than the call that requested it.
 */
export function createSharedReads<Query, Result>(
  readAll: (queries: readonly Query[]) => Promise<readonly Result[]>,
): (query: Query) => Promise<Result> {
  let queue: SharedRead<Query, Result>[] = []
  /** When the newest read in progress began, in epoch milliseconds. */
  let readingSince: number | undefined
  let lastReadMs = CHECK_MS
  const isIdle = () => readingSince === undefined || Date.now() - readingSince > MAX_SHARED_READ_MS

  /** Reads for a request and for all waiting requests. */
  async function lead(query: Query): Promise<Result> {
    const others = queue.splice(0, MAX_READS_TOGETHER - 1)
    const startedAt = Date.now()
    readingSince = startedAt
    for (const other of others) {
      other.state = 'reading'
      other.readSince = startedAt
    }
    const read = readAll([query, ...others.map(other => other.query)])
    const settle = (stateOf: (index: number) => SharedRead<Query, Result>['state']) => {
      if (readingSince === startedAt) readingSince = undefined
      lastReadMs = Date.now() - startedAt
      for (const [index, other] of others.entries()) other.state = stateOf(index + 1)
    }
    // Other requests wait for this read, so it must outlive the request that makes it.
    waitUntil(
      read.then(
        results => settle(index => ({ result: results[index] as Result })),
        () => settle(() => 'failed'),
      ),
    )
    if (others.length === 0) return (await read)[0] as Result
    const results = await read.catch(() => undefined)
    return results === undefined ? readAlone(query) : (results[0] as Result)
  }

  const readAlone = async (query: Query): Promise<Result> => (await readAll([query]))[0] as Result

  /** Returns when to check next: as soon as the read should have ended, or when it is the request's turn. */
  function pauseOf({ state, queuedAt, readSince }: SharedRead<Query, Result>): number {
    const now = Date.now()
    const expectedEnd = (readSince ?? readingSince ?? now) + lastReadMs
    const latest = state === 'queued' ? queuedAt + MAX_TURN_MS : now + MAX_PAUSE_MS
    return Math.max(CHECK_MS, Math.min(expectedEnd, latest) - now)
  }

  return async query => {
    if (isIdle()) return lead(query)
    const own: SharedRead<Query, Result> = { query, queuedAt: Date.now(), state: 'queued' }
    queue.push(own)
    for (;;) {
      // A request must not await another request's promise: it would continue in that request's context and end with
      // it.
      await sleep(pauseOf(own))
      const { state } = own
      const waitedMs = Date.now() - own.queuedAt
      if (typeof state === 'object') return state.result
      if (state === 'failed' || waitedMs > MAX_SHARED_READ_MS) return readAlone(query)
      if (state === 'queued' && (isIdle() || waitedMs > MAX_TURN_MS)) {
        queue = queue.filter(other => other !== own)
        return lead(query)
      }
    }
  }
}
