import type { EventFilter, LoggedEvent } from './event.ts'
import { encodeEvent, encodeHeartbeat, encodeOpening } from './sse-frames.ts'
import type { EventLog } from './store.ts'

export type Subscribers = ReturnType<typeof createSubscribers>

/** How much a stream may buffer. A client further behind is served from the log instead of from memory. */
const MAX_BUFFERED_BYTES = 32 * 1024
const EVENTS_PER_READ = 50
/** A client that reads nothing for more heartbeats than this is disconnected. */
const MAX_STALLED_HEARTBEATS = 4
const CLIENT_RETRY_MS = 1_000
/** More streams might not fit into the memory of one object. */
const MAX_STREAMS = 4_000

type Subscriber = {
  filter: EventFilter
  /** The address of the client. */
  client: string
  controller: ReadableStreamDefaultController<Uint8Array>
  /** The row of the log up to which everything that the filter selects was sent. */
  sentThrough: number
  /** Whether the stream reads from the log instead of getting published events. */
  isBehind: boolean
  /** Consecutive heartbeats at which nothing could be sent. */
  stalledHeartbeats: number
}

/** Holds the open streams. An event is encoded once per filter; a stream that keeps up costs one reference to it. */
export function createSubscribers(eventLog: EventLog) {
  const subscribers = new Set<Subscriber>()
  const byFilter = new Map<string, Set<Subscriber>>()
  const countByClient = new Map<string, number>()

  function add(subscriber: Subscriber) {
    subscribers.add(subscriber)
    countByClient.set(subscriber.client, countOf(subscriber.client) + 1)
    const key = keyOf(subscriber.filter)
    byFilter.set(key, (byFilter.get(key) ?? new Set()).add(subscriber))
  }

  const countOf = (client: string) => countByClient.get(client) ?? 0

  function remove(subscriber: Subscriber) {
    if (!subscribers.delete(subscriber)) return
    const count = countOf(subscriber.client) - 1
    if (count > 0) countByClient.set(subscriber.client, count)
    else countByClient.delete(subscriber.client)
    const key = keyOf(subscriber.filter)
    const others = byFilter.get(key)
    others?.delete(subscriber)
    if (others?.size === 0) byFilter.delete(key)
  }

  function enqueue(subscriber: Subscriber, frame: Uint8Array) {
    try {
      subscriber.controller.enqueue(frame)
    } catch {
      remove(subscriber) // the client closed the stream
    }
  }

  const isFull = ({ controller }: Subscriber) => (controller.desiredSize ?? 0) <= 0

  /** Sends missed events from the log until the buffer is full or none is left. */
  function sendMissed(subscriber: Subscriber) {
    while (subscriber.isBehind && !isFull(subscriber)) {
      const { events, through } = eventLog.page(subscriber.filter, subscriber.sentThrough, EVENTS_PER_READ)
      for (const event of events) enqueue(subscriber, encodeEvent(event, subscriber.filter))
      subscriber.sentThrough = through
      subscriber.isBehind = events.length === EVENTS_PER_READ && subscribers.has(subscriber)
    }
  }

  return {
    size: () => subscribers.size,
    isFull: () => subscribers.size >= MAX_STREAMS,
    /** How many streams a client has open. */
    countOf,

    /** Opens a stream of the events after a row of the log. `id` is the id that the client resumed from, or the row's. */
    open(
      { filter, client }: Pick<Subscriber, 'filter' | 'client'>,
      after: number,
      id: string,
    ): ReadableStream<Uint8Array> {
      let subscriber: Subscriber
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            subscriber = { filter, client, controller, sentThrough: after, isBehind: true, stalledHeartbeats: 0 }
            add(subscriber)
            enqueue(subscriber, encodeOpening(id, CLIENT_RETRY_MS))
            sendMissed(subscriber)
          },
          pull() {
            subscriber.stalledHeartbeats = 0
            sendMissed(subscriber)
          },
          cancel: () => remove(subscriber),
        },
        new ByteLengthQueuingStrategy({ highWaterMark: MAX_BUFFERED_BYTES }),
      )
    },

    /** Sends new events of the log to the streams that select them. A full stream reads them from the log later. */
    publish(events: readonly LoggedEvent[]) {
      for (const event of events)
        for (const key of keysOf(event, byFilter)) {
          let frame: Uint8Array | undefined
          for (const subscriber of byFilter.get(key) ?? []) {
            if (subscriber.isBehind) continue
            if (isFull(subscriber)) subscriber.isBehind = true
            else {
              frame ??= encodeEvent(event, subscriber.filter)
              enqueue(subscriber, frame)
              subscriber.sentThrough = event.seq
            }
          }
        }
    },

    /** Sends a heartbeat to every stream that keeps up, and disconnects the clients that stopped reading. */
    sendHeartbeat() {
      const frame = encodeHeartbeat(eventLog.newest().id)
      for (const subscriber of subscribers) {
        if (!isFull(subscriber) && !subscriber.isBehind) {
          subscriber.stalledHeartbeats = 0
          enqueue(subscriber, frame)
        } else if (++subscriber.stalledHeartbeats > MAX_STALLED_HEARTBEATS) {
          remove(subscriber)
          subscriber.controller.error(new Error('The client has not read its events for too long.'))
        }
      }
    },
  }
}

const ALL = '*'
const keyOf = ({ agentId, vault }: EventFilter) => (agentId === undefined ? (vault ?? ALL) : `${agentId}`)

/** Returns the keys of the filters that select an event. A reorg reaches every stream. */
function keysOf({ type, agentId, vault }: LoggedEvent, byFilter: ReadonlyMap<string, unknown>): Iterable<string> {
  if (type === 'reorg') return byFilter.keys()
  return [ALL, ...(agentId === undefined ? [] : [`${agentId}`]), ...(vault === undefined ? [] : [vault])]
}
