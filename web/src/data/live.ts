import { createClient, type EventsRequest, NotFoundError } from '@agent-trading-service/client'
import { useEffect } from 'preact/hooks'
import { createStore, useStore } from './store.ts'
import { type Change, changeOf } from './touched-reads.ts'

/** The state of the page's event stream. `since` is the epoch time in milliseconds at which it began. */
export type Connection = { state: 'off' | 'connecting' | 'live' | 'reconnecting'; since: number }

/** A reorg that the stream reported: the last block that stayed, and how many events were withdrawn. */
export type Reorg = { commonAncestor: string; withdrawn: number }

export const connection = createStore<Connection>({ state: 'off', since: 0 })
export const lastReorg = createStore<Reorg | undefined>(undefined)
/** What has happened since the last batch; the page reads again what it touches. */
export const changes = createStore<readonly Change[]>([])
/** Whether the last read of the service did not reach it. */
export const isUnreachable = createStore(false)

/** Bursts of events cause at most one batch in this time; the first event does not wait. */
const MIN_INTERVAL_MS = 2_000
const RETRY_MS = 2_000
/** How often the page looks whether the network still carries anything, and how long a response to that may take. */
const LOOK_MS = 4_000
const MAX_RESPONSE_MS = 4_000

const isVisible = createStore(document.visibilityState === 'visible')
let wasHidden = false
document.addEventListener('visibilitychange', () => {
  wasHidden ||= document.visibilityState !== 'visible'
  isVisible.set(document.visibilityState === 'visible')
})

/** Follows the events of an agent, a vault, or all agents (`{}`) while the component is mounted and the page is visible. */
export function useLive(request: Pick<EventsRequest, 'agentId' | 'vault'> | undefined): void {
  const key = useStore(isVisible) && request ? JSON.stringify(request) : undefined
  useEffect(() => {
    if (key === undefined) return
    const ended = new AbortController()
    follow(JSON.parse(key), ended.signal)
    return () => {
      ended.abort()
      setState('off')
    }
  }, [key])
}

/** Reads a stream until the signal ends it, and reconnects behind the last event. */
async function follow(request: EventsRequest, signal: AbortSignal): Promise<void> {
  let lastEventId: string | undefined
  let wasLost = wasHidden // a hidden page has missed events
  wasHidden = false
  let attempt = new AbortController()
  const watch = setInterval(async () => {
    const watched = attempt
    const wasOpen = connection.get().state === 'live'
    const isSilent = await isNetworkSilent()
    if (signal.aborted || attempt !== watched) return
    // A connection that is still not open was lost on its way.
    if (isSilent || !(wasOpen || connection.get().state === 'live')) watched.abort()
    if (isSilent) setState('reconnecting', heardAt)
  }, LOOK_MS)
  signal.addEventListener('abort', () => {
    clearInterval(watch)
    attempt.abort()
  })
  const stream = createClient({
    baseUrl: window.location.origin,
    retryBudgetMs: 0, // a lost connection is shown, and opened again here
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (response.ok && !signal.aborted) {
        setState('live')
        if (wasLost) announce('everything')
        wasLost = false
      }
      return response
    },
  })
  while (!signal.aborted) {
    if (connection.get().state !== 'reconnecting') setState('connecting')
    attempt = new AbortController()
    try {
      const from = lastEventId === undefined ? {} : { lastEventId }
      for await (const event of stream.events({ ...request, ...from, signal: attempt.signal })) {
        lastEventId = event.id
        markHeard()
        if (event.type === 'reorg')
          lastReorg.set({ commonAncestor: event.data.commonAncestor, withdrawn: event.data.withdrawn.length })
        announce(changeOf(event))
      }
    } catch (error) {
      if (error instanceof NotFoundError) clearInterval(watch)
      if (signal.aborted || error instanceof NotFoundError) return
    }
    if (signal.aborted) return
    wasLost = true
    setState('reconnecting')
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
}

let heardAt = 0

/** Notes that something came from the service. */
export const markHeard = (): void => {
  heardAt = Date.now()
}

/**
 * Whether nothing comes from the service: neither an event or a read of late, nor a response now. A network that drops
 * packets ends no connection, and heartbeats are too far apart to notice.
 */
async function isNetworkSilent(): Promise<boolean> {
  if (Date.now() - heardAt < LOOK_MS) return false
  return fetch('/health', { method: 'HEAD', cache: 'no-store', signal: AbortSignal.timeout(MAX_RESPONSE_MS) }).then(
    () => {
      markHeard()
      return false
    },
    () => true,
  )
}

function setState(state: Connection['state'], since = Date.now()) {
  if (connection.get().state !== state) connection.set({ state, since })
}

let announcedAt = 0
let batch: Change[] = []
let pending: ReturnType<typeof setTimeout> | undefined

/** Tells the page that something changed: at once, or at the end of the interval. */
function announce(change: Change) {
  batch.push(change)
  if (pending !== undefined) return
  const wait = Math.max(0, announcedAt + MIN_INTERVAL_MS - Date.now())
  pending = setTimeout(() => {
    pending = undefined
    announcedAt = Date.now()
    changes.set(batch)
    batch = []
  }, wait)
}

/** Reads again at once: after a transaction of the page's own. */
export const readAgain = (): void => changes.set(['everything'])
