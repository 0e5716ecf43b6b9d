import { useEffect } from 'preact/hooks'
import type { Reorg, StreamMessage, Subject } from './event-stream.ts'
import { followShared } from './shared-stream.ts'
import { alertStop, stopAlerts } from './stop-alerts.ts'
import { createStore, useStore } from './store.ts'
import type { Change } from './touched-reads.ts'

/** The state of the page's event stream. `since` is the epoch time in milliseconds at which it began. */
export type Connection = { state: 'off' | 'connecting' | 'live' | 'reconnecting'; since: number }

export const connection = createStore<Connection>({ state: 'off', since: 0 })
export const lastReorg = createStore<Reorg | undefined>(undefined)
/** What has happened since the last batch; the page reads again what it touches. */
export const changes = createStore<readonly Change[]>([])
/** Whether the last read of the service did not reach it. */
export const isUnreachable = createStore(false)

/** Bursts of events cause at most one batch in this time; the first event does not wait. */
const MIN_INTERVAL_MS = 2_000

const isVisible = createStore(document.visibilityState === 'visible')
let wasHidden = false
document.addEventListener('visibilitychange', () => {
  wasHidden ||= document.visibilityState !== 'visible'
  isVisible.set(document.visibilityState === 'visible')
})

/**
 * Follows the events of an agent, a vault, or all agents (`{}`) while the component is mounted and the page is visible,
 * or is to say when a stop-loss fires.
 */
export function useLive(subject: Subject | undefined): void {
  const [isSeen, isAlerting] = [useStore(isVisible), useStore(stopAlerts)]
  const key = (isSeen || isAlerting) && subject ? JSON.stringify(subject) : undefined
  useEffect(() => {
    if (key === undefined) return
    const ended = new AbortController()
    let mayHaveMissed = wasHidden
    wasHidden = false
    setState('connecting')
    followShared(JSON.parse(key), ended.signal, message => {
      if (ended.signal.aborted) return
      apply(message)
      if (mayHaveMissed && message.kind === 'state' && message.state === 'live') {
        mayHaveMissed = false
        announce('everything')
      }
    })
    return () => {
      ended.abort()
      setState('off')
    }
  }, [key])
}

function apply(message: StreamMessage): void {
  if (message.kind === 'state') setState(message.state, message.since)
  else if (message.kind === 'gap') announce('everything')
  else {
    if (message.reorg) lastReorg.set(message.reorg)
    if (message.stop) alertStop(message.stop)
    announce(message.change)
  }
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
