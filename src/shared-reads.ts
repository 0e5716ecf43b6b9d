import { waitUntil } from 'cloudflare:workers'
import { withDeadline } from './timeout.ts'

const MAX_READS_TOGETHER = 64
/** How long a request waits for the read before its own. */
const MAX_TURN_MS = 10
/** How long a request waits for its result from another request, which may have been canceled. */
const MAX_SHARED_READ_MS = 1_000

type Turn<Result> = { kind: 'lead' } | { kind: 'alone' } | { kind: 'result'; result: Result }
type Waiting<Query, Result> = { query: Query; turn: PromiseWithResolvers<Turn<Result>> }

/**
 * Returns a function that reads for one request of this isolate, together with the requests that wait at the same time. A read starts at
 * once if none is on its way; those that come meanwhile share the next one, which the first of them makes. A read that fails is repeated for
 * each of its requests. Every result is read after its request has asked for it.
 */
export function createSharedReads<Query, Result>(
  readAll: (queries: readonly Query[]) => Promise<readonly Result[]>,
): (query: Query) => Promise<Result> {
  let waiting: Waiting<Query, Result>[] = []
  let reading: Promise<unknown> | undefined

  /** Reads for a request and for all that wait. */
  async function lead(query: Query): Promise<Result> {
    const others = waiting.slice(0, MAX_READS_TOGETHER - 1)
    waiting = waiting.slice(others.length)
    const read = readAll([query, ...others.map(other => other.query)])
    reading = read
    const settle = (turnOf: (index: number) => Turn<Result>) => {
      for (const [index, { turn }] of others.entries()) turn.resolve(turnOf(index + 1))
      if (reading !== read) return
      reading = undefined
      waiting[0]?.turn.resolve({ kind: 'lead' })
    }
    const settled = read.then(
      results => settle(index => ({ kind: 'result', result: results[index] as Result })),
      () => settle(() => ({ kind: 'alone' })),
    )
    // Other requests await this read, so it must outlive the request that makes it.
    if (others.length > 0) waitUntil(settled)
    try {
      const [own] = await read
      return own as Result
    } catch (error) {
      if (others.length === 0) throw error
      return readAlone(query)
    }
  }

  async function readAlone(query: Query): Promise<Result> {
    const [result] = await readAll([query])
    return result as Result
  }

  /** Takes a request out of the queue. Returns whether it was still there. */
  function leaveQueue(own: Waiting<Query, Result>): boolean {
    const isWaiting = waiting.includes(own)
    waiting = waiting.filter(other => other !== own)
    return isWaiting
  }

  return async query => {
    if (reading === undefined) return lead(query)
    const own: Waiting<Query, Result> = { query, turn: Promise.withResolvers() }
    waiting.push(own)
    const early = await withDeadline(own.turn.promise, Date.now() + MAX_TURN_MS, () => undefined)
    if (leaveQueue(own)) return lead(query)
    const turn =
      early ??
      (await withDeadline(own.turn.promise, Date.now() + MAX_SHARED_READ_MS, () => ({ kind: 'alone' }) as const))
    return turn.kind === 'result' ? turn.result : readAlone(query)
  }
}
