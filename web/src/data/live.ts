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
/** Why many reads fail or are old, from the worst. */
const OUTAGES = ['service', 'limit', 'chain', 'index', 'lag'] as const
/** `readAt` is in milliseconds: of the oldest figures that stay in view. */
export type Outage = { of: (typeof OUTAGES)[number]; readAt?: number | undefined }
export const outage = createStore<Outage | undefined>(undefined)
const failing = new Map<string, Outage>()

const OUTAGE_OF: Record<string, Outage['of']> = {
  NETWORK_ERROR: 'service',
  RATE_LIMITED: 'limit',
  HTTP_429: 'limit',
  CHAIN_UNREACHABLE: 'chain',
  NODES_BEHIND: 'chain',
  HISTORY_UNAVAILABLE: 'index',
  /** No error: the index is far behind. */
  INDEX_BEHIND: 'lag',
}

/** Returns what is out if an error is one that the page says once, not in each of its parts. A gateway has no code. */
const outageOf = (code = ''): Outage['of'] | undefined => (/^HTTP_5/.test(code) ? 'service' : OUTAGE_OF[code])
export const isOutage = (code: string | undefined): boolean => outageOf(code) !== undefined

/** Notes how a read ended; without a code, that it succeeded or is no longer made. */
export function noteRead(name: string, code?: string, readAt?: number): void {
  const of = outageOf(code)
  if (of === undefined) failing.delete(name)
  else failing.set(name, { of, readAt })
  const all = [...failing.values()]
  const worst = OUTAGES.find(each => all.some(({ of }) => of === each))
  const oldest = Math.min(...all.map(({ readAt: at }) => at ?? Number.POSITIVE_INFINITY))
  const next = worst && { of: worst, readAt: oldest === Number.POSITIVE_INFINITY ? undefined : oldest }
  if (JSON.stringify(next) !== JSON.stringify(outage.get())) outage.set(next)
}

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
  else if (message.kind === 'opened') announce({ type: 'opened', block: message.block })
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
