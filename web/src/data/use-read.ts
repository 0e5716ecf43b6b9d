import type { AgentTradingError, ReadId, ReadInput, ReadOutput } from '@agent-trading-service/client'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { reads, toServiceError } from './client.ts'
import { markHeard } from './event-stream.ts'
import { changes, isUnreachable } from './live.ts'
import { createReadLoop } from './read-loop.ts'
import { isTouched } from './touched-reads.ts'

/** What a page knows of a read. `data` stays while it is read again; with `error` it is stale. `readAt` is in milliseconds. */
export type Reading<T> = { data?: T; error?: AgentTradingError; readAt?: number; reload(): void }
type State<T> = Omit<Reading<T>, 'reload'> & { key: string | undefined }

const MAX_CACHED = 60
const cache = new Map<string, { data: unknown; readAt: number }>()

function remember(key: string, data: unknown, readAt: number) {
  cache.delete(key)
  cache.set(key, { data, readAt })
  const [oldest] = cache.keys()
  if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest)
}

const POLL_MS = 15_000

/**
 * Reads from the service, and reads again when the event stream reports a change, every 15 seconds while the page is
 * visible, and on `reload`. An input that is undefined is not read. With `isTouched: false`, events do not repeat it.
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
    setState(cachedState(key))
    if (key === undefined) return
    const call = reads[id] as (given: unknown) => Promise<Output>
    const { request, stop } = createReadLoop(
      () =>
        call(input).then(
          data => ({ key, data, readAt: Date.now() }),
          error => ({ key, error: toServiceError(error) }),
        ),
      next => {
        isUnreachable.set('error' in next && next.error.code === 'NETWORK_ERROR')
        if ('data' in next) {
          remember(key, next.data, next.readAt)
          markHeard()
        }
        setState(previous => ('data' in next ? next : { ...previous, ...next }))
      },
    )
    load.current = request
    request()
    const unsubscribe = changes.subscribe(batch => {
      if (batch.some(change => change === 'everything' || (isRepeated && isTouched(id, input, change)))) request()
    })
    const timer = setInterval(() => document.visibilityState === 'visible' && request(), pollMs)
    return () => {
      stop()
      unsubscribe()
      clearInterval(timer)
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
