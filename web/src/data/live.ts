import { useEffect } from 'preact/hooks'
import { createStore } from './store.ts'

/** The state of the page's event stream. `since` is the epoch time in milliseconds at which it began. */
export type Connection = { state: 'off' | 'connecting' | 'live' | 'reconnecting'; since: number }

/** A reorg that the stream reported: the last block that stayed, and how many events were withdrawn. */
export type Reorg = { commonAncestor: string; withdrawn: number }

export const connection = createStore<Connection>({ state: 'off', since: 0 })
export const lastReorg = createStore<Reorg | undefined>(undefined)
/** Grows when something happened that the page should read again. */
export const changes = createStore(0)

const EVENTS = ['trade', 'exit', 'ladder', 'mandate', 'intent', 'risk', 'price-stale', 'price-fresh']
/** Bursts of events cause at most one read in this time. */
const MIN_INTERVAL_MS = 400
const RETRY_MS = 3_000

/** Follows an event stream while the component is mounted, such as `/agents/1/events`. */
export function useLive(path: string | undefined): void {
  useEffect(() => {
    if (path === undefined) return
    let source: EventSource | undefined
    let retry: ReturnType<typeof setTimeout> | undefined
    let wasLost = false

    function open() {
      setState(wasLost ? 'reconnecting' : 'connecting')
      source = new EventSource(path as string)
      source.onopen = () => {
        setState('live')
        if (wasLost) announce()
        wasLost = false
      }
      source.onerror = () => {
        wasLost = true
        setState('reconnecting')
        // The browser reconnects by itself unless the service refused the stream.
        if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS)
      }
      for (const type of EVENTS) source.addEventListener(type, announce)
      source.addEventListener('reorg', event => {
        const { commonAncestor, withdrawn } = JSON.parse(event.data) as { commonAncestor: string; withdrawn: unknown[] }
        lastReorg.set({ commonAncestor, withdrawn: withdrawn.length })
        announce()
      })
    }
    open()
    return () => {
      clearTimeout(retry)
      source?.close()
      setState('off')
    }
  }, [path])
}

function setState(state: Connection['state']) {
  if (connection.get().state !== state) connection.set({ state, since: Date.now() })
}

let announcedAt = 0
let pending: ReturnType<typeof setTimeout> | undefined

/** Tells the page that something changed: at once, or at the end of the interval. */
function announce() {
  if (pending !== undefined) return
  const wait = Math.max(0, announcedAt + MIN_INTERVAL_MS - Date.now())
  pending = setTimeout(() => {
    pending = undefined
    announcedAt = Date.now()
    changes.set(changes.get() + 1)
  }, wait)
}

/** Reads again at once: after a transaction of the page's own. */
export const readAgain = (): void => announce()
