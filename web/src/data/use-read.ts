import type { AgentTradingError, ReadId, ReadInput, ReadOutput } from '@agent-trading-service/client'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { reads, toServiceError } from './client.ts'
import { markHeard } from './event-stream.ts'
import { changes, isOutage, noteRead } from './live.ts'
import { createReadLoop } from './read-loop.ts'
import { type Change, isOpening, isTouched } from './touched-reads.ts'

/**
 * What a page knows of a read. `data` stays while it is read again; with `error` it is stale. `readAt` is in
 * milliseconds.
 */
export type Reading<T> = { data?: T; error?: AgentTradingError; readAt?: number; reload(): void }
type State<T> = Omit<Reading<T>, 'reload'> & { key: string | undefined }

const MAX_CACHED = 60
const cache = new Map<string, { data: unknown; readAt: number }>()

/** Drops what was read, because something in it cannot be shown. */
export const forgetReads = (): void => cache.clear()

function remember(key: string, data: unknown, readAt: number) {
  cache.delete(key)
  cache.set(key, { data, readAt })
  const [oldest] = cache.keys()
  if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest)
}

export const POLL_MS = 15_000
/** After a read that found an outage. */
const RETRY_MS = 5_000

type Call = { id: ReadId; input: unknown; pollMs: number; isRepeated: boolean }
type SharedRead = {
  latest: State<unknown>
  readers: Set<(state: State<unknown>) => void>
  request(): void
  stop(): void
}

/** An index that is behind for a moment catches up before the page reads again. */
const MAX_LAG_MS = 60_000

/** Whether data is of an index that has been behind the chain for a while. */
function isBehind(data: unknown): boolean {
  const { lagBlocks = 0, asOf } = (data ?? {}) as { lagBlocks?: number; asOf?: { blockTimestamp: string } }
  return lagBlocks > 0 && asOf !== undefined && Date.now() - Number(asOf.blockTimestamp) * 1_000 > MAX_LAG_MS
}

/** The block that data is as of. */
const blockOf = (data: unknown): number | undefined => {
  const { asOf } = (data ?? {}) as { asOf?: { blockNumber: string } }
  return asOf && Number(asOf.blockNumber)
}

/** The reads of the components on the page: one read serves all that show the same. */
const shared = new Map<string, SharedRead>()

function startReading(key: string, { id, input, pollMs, isRepeated }: Call): SharedRead {
  const call = reads[id] as (given: unknown) => Promise<unknown>
  const loop = createReadLoop<State<unknown>>(
    () =>
      call(input).then(
        data => ({ key, data, readAt: Date.now() }),
        error => ({ key, error: toServiceError(error) }),
      ),
    next => {
      if (next.readAt !== undefined) {
        remember(key, next.data, next.readAt)
        markHeard()
      }
      read.latest = next.error ? { ...read.latest, ...next } : next
      if (isBehind(next.data)) noteRead(key, 'INDEX_BEHIND')
      else noteRead(key, next.error?.code, read.latest.readAt)
      clearTimeout(retry)
      const pauseMs = (next.error?.retryAfterSeconds ?? 0) * 1_000
      resumesAt = Date.now() + pauseMs
      const retryMs = isOutage(next.error?.code) ? RETRY_MS : POLL_MS
      if (next.error?.retryable) retry = setTimeout(resume, Math.max(pauseMs, Math.min(retryMs, pollMs)))
      for (const reader of read.readers) reader(read.latest)
      if (next.data === undefined) return
      if (opening && isDue(opening)) request()
      opening = undefined
    },
  )
  /** That the stream has opened during the first read, whose data tells whether it began before. */
  let opening: Change | undefined
  const isDue = (change: Change) =>
    change === 'everything' || (isRepeated && isTouched(id, input, change, blockOf(read.latest.data)))
  const unsubscribe = changes.subscribe(batch => {
    if (read.latest.data === undefined) opening = batch.find(isOpening)
    if (batch.some(change => change !== opening && isDue(change))) request()
  })
  let retry: ReturnType<typeof setTimeout> | undefined
  let resumesAt = 0
  // A service that limits the page says when it may read again.
  const request = () => Date.now() >= resumesAt && loop.request()
  // A timer may fire in the millisecond before the pause ends.
  const resume = () => {
    resumesAt = 0
    requestIfSeen()
  }
  const requestIfSeen = () => document.visibilityState === 'visible' && request()
  const timer = setInterval(requestIfSeen, pollMs)
  const read: SharedRead = {
    latest: cachedState(key),
    readers: new Set(),
    request: loop.request,
    stop() {
      loop.stop()
      noteRead(key)
      unsubscribe()
      clearInterval(timer)
      clearTimeout(retry)
    },
  }
  loop.request()
  return read
}

/**
 * Reads from the service, and reads again when the event stream reports a change, every 15 seconds while the page is
 * visible, and on `reload`. An input that is undefined is not read. With `isTouched: false`, events do not repeat it.
 * Components that read the same share the read, so a page can begin it before the component that shows it is there.
 */
export function useRead<Id extends ReadId>(
  id: Id,
  input: ReadInput<Id> | undefined,
  { pollMs = POLL_MS, isTouched: isRepeated = true } = {},
): Reading<ReadOutput<Id>> {
  type Output = ReadOutput<Id>
  const key = input && `${id} ${JSON.stringify(input)}`
  const [state, setState] = useState<State<Output>>(() => cachedState(key))
  const load = useRef<() => void>(() => {})

  useEffect(() => {
    if (key === undefined) return setState({ key })
    const name = `${key} ${pollMs} ${isRepeated}`
    const read = shared.get(name) ?? startReading(key, { id, input, pollMs, isRepeated })
    const reader = (next: State<unknown>) => setState(next as State<Output>)
    shared.set(name, read)
    read.readers.add(reader)
    reader(read.latest)
    load.current = read.request
    return () => {
      read.readers.delete(reader)
      if (read.readers.size > 0) return
      read.stop()
      shared.delete(name)
    }
  }, [key, pollMs])

  const reload = useCallback(() => load.current(), [])
  return { ...(state.key === key ? state : cachedState<Output>(key)), reload }
}

/** Returns a reading that keeps its data while another input is read for the first time. */
export function useLatest<T>(reading: Reading<T>): Reading<T> {
  const latest = useRef<T>(undefined)
  if (reading.data !== undefined) latest.current = reading.data
  return latest.current === undefined ? reading : { ...reading, data: latest.current }
}

function cachedState<T>(key: string | undefined): State<T> {
  const cached = key === undefined ? undefined : cache.get(key)
  return cached ? { key, data: cached.data as T, readAt: cached.readAt } : { key }
}
