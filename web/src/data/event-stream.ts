import { createClient, type EventsRequest, NotFoundError, type StreamPosition } from '@agent-trading-service/client'
import { type FiredStop, firedStopOf } from './stop-alerts.ts'
import { type Change, changeOf } from './touched-reads.ts'

/** Which events a page follows: those of an agent, of a vault, or of all agents. */
export type Subject = Pick<EventsRequest, 'agentId' | 'vault'>

/** A reorg that the stream reported: the last block that stayed, and how many events were withdrawn. */
export type Reorg = { commonAncestor: string; withdrawn: number }

/**
 * What a stream says: its state, since when (epoch milliseconds), an event, the block of the newest event when it
 * opened, or that events may have been missed.
 */
export type StreamMessage =
  | { kind: 'state'; state: 'connecting' | 'live' | 'reconnecting'; since: number }
  | { kind: 'event'; id: string; change: Change; reorg?: Reorg; stop?: FiredStop | undefined }
  | { kind: 'opened'; block: number }
  | { kind: 'gap' }

const RETRY_MS = 2_000
/** How often the page looks whether the network still carries anything, and how long a response to that may take. */
export const LOOK_MS = 4_000
const MAX_RESPONSE_MS = 4_000

/** Where a stream begins: after an event, or now. `wasLost` tells that events may have been missed before. */
type Start = { lastEventId?: string | undefined; wasLost: boolean }

/** Reads a stream until the signal ends it, and reconnects behind the last event. */
export async function followEvents(
  subject: Subject,
  start: Start,
  signal: AbortSignal,
  tell: (message: StreamMessage) => void,
): Promise<void> {
  let { lastEventId, wasLost } = start
  let attempt = new AbortController()
  let state: 'connecting' | 'live' | 'reconnecting' | undefined
  const setState = (next: typeof state & string, since = Date.now()) => {
    if (state !== next) tell({ kind: 'state', state: next, since })
    state = next
  }
  const watch = setInterval(async () => {
    const watched = attempt
    const wasOpen = state === 'live'
    const isSilent = await isNetworkSilent()
    if (signal.aborted || attempt !== watched) return
    // A connection that is still not open was lost on its way.
    if (isSilent || !(wasOpen || state === 'live')) watched.abort()
    if (isSilent) setState('reconnecting', heardAt)
  }, LOOK_MS)
  const stop = () => {
    clearInterval(watch)
    attempt.abort()
  }
  signal.addEventListener('abort', stop)
  const stream = createClient({
    baseUrl: window.location.origin,
    retryBudgetMs: 0, // a lost connection is shown, and opened again here
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (response.ok && !signal.aborted) {
        setState('live')
        if (wasLost) tell({ kind: 'gap' })
        wasLost = false
      }
      return response
    },
  })
  while (!signal.aborted) {
    if (state !== 'reconnecting') setState('connecting')
    attempt = new AbortController()
    let isOpening = lastEventId === undefined
    const onPosition = ({ blockNumber }: StreamPosition) => {
      if (isOpening) tell({ kind: 'opened', block: Number(blockNumber) })
      isOpening = false
    }
    try {
      const after = lastEventId === undefined ? {} : { lastEventId }
      for await (const event of stream.events({ ...subject, ...after, onPosition, signal: attempt.signal })) {
        lastEventId = event.id
        markHeard()
        tell({
          kind: 'event',
          id: event.id,
          change: changeOf(event),
          stop: firedStopOf(event),
          ...(event.type === 'reorg' && {
            reorg: { commonAncestor: event.data.commonAncestor, withdrawn: event.data.withdrawn.length },
          }),
        })
      }
    } catch (error) {
      if (error instanceof NotFoundError) stop()
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
