import { waitUntil } from 'cloudflare:workers'
import { withDeadline } from './timeout.ts'

const MAX_READS_TOGETHER = 64
/** How long a request waits for the read in progress. */
const MAX_TURN_MS = 10
/** How long a request waits for another request to read its result. The other request may have ended. */
const MAX_SHARED_READ_MS = 1_000

/** What a waiting request does next: use a result, read for all that wait, or read by itself. */
type Turn<Result> = { kind: 'result'; result: Result } | { kind: 'lead' } | { kind: 'alone' }

type WaitingRead<Query, Result> = { query: Query; turn: PromiseWithResolvers<Turn<Result>> }

/**
 * Returns a function that reads for one request, together with other waiting requests of this isolate. A read starts at
 * once if none is in progress. Requests that arrive during a read share the next one, which one of them makes; if it
 * fails, each reads by itself. A result is never older than the call that requested it.
 */
export function createSharedReads<Query, Result>(
  readAll: (queries: readonly Query[]) => Promise<readonly Result[]>,
): (query: Query) => Promise<Result> {
  let queue: WaitingRead<Query, Result>[] = []
  /** When the newest read in progress began, in epoch milliseconds. */
  let readingSince: number | undefined
  const isIdle = () => readingSince === undefined || Date.now() - readingSince > MAX_SHARED_READ_MS

  /** Reads for a request and for all waiting requests. */
  async function lead(query: Query): Promise<Result> {
    const others = queue.splice(0, MAX_READS_TOGETHER - 1)
    const startedAt = Date.now()
    readingSince = startedAt
    const read = readAll([query, ...others.map(other => other.query)])
    const end = (turnOf: (index: number) => Turn<Result>) => {
      for (const [index, { turn }] of others.entries()) turn.resolve(turnOf(index))
      if (readingSince !== startedAt) return
      readingSince = undefined
      queue.shift()?.turn.resolve({ kind: 'lead' })
    }
    // Other requests wait for this read, so it must outlive the request that makes it.
    waitUntil(
      read.then(
        results => end(index => ({ kind: 'result', result: results[index + 1] as Result })),
        () => end(() => ({ kind: 'alone' })),
      ),
    )
    if (others.length === 0) return (await read)[0] as Result
    const results = await read.catch(() => undefined)
    return results === undefined ? readAlone(query) : (results[0] as Result)
  }

  const readAlone = async (query: Query): Promise<Result> => (await readAll([query]))[0] as Result

  /**
   * Waits until another request has read for this one, or until it is this one's turn. Each request has its own promise,
   * which others resolve: a promise of another request would never settle if that request ended.
   */
  async function waitForTurn(own: WaitingRead<Query, Result>): Promise<Turn<Result>> {
    const { promise } = own.turn
    const turn = await withDeadline(promise, Date.now() + MAX_TURN_MS, () => undefined)
    if (turn !== undefined) return turn
    if (queue.includes(own)) {
      queue = queue.filter(other => other !== own)
      return { kind: 'lead' }
    }
    return withDeadline(promise, Date.now() + MAX_SHARED_READ_MS, () => ({ kind: 'alone' }) as const)
  }

  return async query => {
    if (isIdle()) return lead(query)
    const own = { query, turn: Promise.withResolvers<Turn<Result>>() }
    queue.push(own)
    const turn = await waitForTurn(own)
    if (turn.kind === 'result') return turn.result
    return turn.kind === 'lead' ? lead(query) : readAlone(query)
  }
}
