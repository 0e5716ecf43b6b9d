import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { RequestFailed, read } from './api.ts'
import { changes } from './live.ts'

/** What a page knows of a resource. `data` stays while it is read again; with `error` it is stale. */
export type Resource<T> = { data?: T; error?: RequestFailed; isLoading: boolean; readAt?: number; reload(): void }

const MAX_CACHED = 60
const cache = new Map<string, { data: unknown; readAt: number }>()

function remember(path: string, data: unknown, readAt: number) {
  cache.delete(path)
  cache.set(path, { data, readAt })
  const [oldest] = cache.keys()
  if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest)
}

const POLL_MS = 15_000

/**
 * Reads a path of the service and reads it again when the event stream reports a change, every 15 seconds while the page is
 * visible, and on `reload`. A path that is undefined is not read.
 */
export function useResource<T>(path: string | undefined, { pollMs = POLL_MS } = {}): Resource<T> {
  const [state, setState] = useState<{ path: string | undefined } & Omit<Resource<T>, 'reload'>>(() => initial(path))
  const load = useRef<() => void>(() => {})

  useEffect(() => {
    setState(initial(path))
    if (path === undefined) return
    let controller: AbortController | undefined
    async function readOnce(target: string) {
      controller?.abort()
      const own = new AbortController()
      controller = own
      try {
        const data = await read<T>(target, own.signal)
        const readAt = Date.now()
        remember(target, data, readAt)
        setState({ path: target, data, readAt, isLoading: false })
      } catch (error) {
        if (own.signal.aborted) return
        const failed = error instanceof RequestFailed ? error : new RequestFailed(0, {})
        setState(previous => ({ ...previous, path: target, error: failed, isLoading: false }))
      }
    }
    load.current = () => readOnce(path)
    readOnce(path)
    const unsubscribe = changes.subscribe(() => readOnce(path))
    const timer = setInterval(() => document.visibilityState === 'visible' && readOnce(path), pollMs)
    return () => {
      controller?.abort()
      unsubscribe()
      clearInterval(timer)
    }
  }, [path, pollMs])

  const reload = useCallback(() => load.current(), [])
  return state.path === path ? { ...state, reload } : { ...initial<T>(path), reload }
}

function initial<T>(path: string | undefined): { path: string | undefined } & Omit<Resource<T>, 'reload'> {
  const cached = path === undefined ? undefined : cache.get(path)
  return cached
    ? { path, data: cached.data as T, readAt: cached.readAt, isLoading: true }
    : { path, isLoading: path !== undefined }
}
