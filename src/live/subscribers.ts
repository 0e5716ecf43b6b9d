import { type Address, concat } from 'viem'
import { createQueue, singleFlight, sleep } from '../concurrency.ts'
import { createNetworkCounts } from '../limits/network-counts.ts'
import type { Networks } from '../requests/client-address.ts'
import { parseEventId } from '../resources/event-id.ts'
import { type EventFilter, type LoggedEvent, type ParsedReorg, parseReorg } from './event.ts'
import type { LogWindow, ReadMissedEvents } from './newest-events.ts'

/** How much a stream may buffer. A client further behind is served from the log instead of from memory. */
const MAX_BUFFERED_BYTES = 32 * 1024
/** The most characters of JSON in a write of several events. */
const MAX_WRITE = 16 * 1024
/** About as many as a buffer holds. */
const EVENTS_PER_READ = 25
/**
 * How many streams are written to before the runtime gets to send. Its HTTP server sends to about a hundred connections
 * at a time and polls all others that have something to send each time, so a write to thousands would cost the square.
 */
const STREAMS_PER_TURN = 4
/** A client that reads nothing for longer than this is disconnected. */
const MAX_STALL_MS = 60_000
const CLIENT_RETRY_MS = 1_000
/** How often to call `sendHeartbeats`. */
export const HEARTBEAT_TICK_MS = 1_000
/** How often a stream gets a heartbeat, unless its client says otherwise. */
export const HEARTBEAT_SECONDS = 15
/** More streams might not fit into the memory of one object. */
export const MAX_STREAMS_PER_OBJECT = 3_000

/** A place for a stream of a client, which counts from before the stream opens until it closes. */
type Seat = { client: string; leave(): void }

type Subscriber = {
  filter: EventFilter
  seat: Seat
  controller: ReadableStreamDefaultController<Uint8Array>
  /** The row of the log up to which all events of the filter were sent. */
  sentThrough: number
  /** Whether the stream reads from the log instead of getting published events. */
  isBehind: boolean
  heartbeatSeconds: number
  /** When the next heartbeat is due; epoch milliseconds. */
  heartbeatAt: number
  /** Since when nothing could be sent; epoch milliseconds. */
  stalledSince: number | undefined
}

/**
 * Holds the open streams of one object. An event is encoded once for all of them, a reorg once per filter; a stream
 * that keeps up costs one reference to it. Streams are written to a few at a time, in rounds that do not overlap, so
 * that each gets its events in order. `readMissed` reads events that are older than the window.
 */
export function createSubscribers({ window, readMissed }: { window: LogWindow; readMissed: ReadMissedEvents }) {
  const subscribers = new Set<Subscriber>()
  /** Streams by the key of their filter, and the keys by each of its selectors. */
  const byFilter = new Map<string, Set<Subscriber>>()
  const keysBySelector = new Map<string, Set<string>>()
  const seats = createNetworkCounts({ perAddress: 0, total: MAX_STREAMS_PER_OBJECT })
  const frames = createFrames()
  /** The events of the next round. */
  let unpublished: LoggedEvent[] = []
  /** Starts a round once all earlier ones have ended. */
  const inOrder = createQueue()
  const afterWrite = createPacer()

  function add(subscriber: Subscriber) {
    subscribers.add(subscriber)
    const key = keyOf(subscriber.filter)
    byFilter.set(key, (byFilter.get(key) ?? new Set()).add(subscriber))
    for (const selector of selectorsOf(subscriber.filter))
      keysBySelector.set(selector, (keysBySelector.get(selector) ?? new Set()).add(key))
  }

  function remove(subscriber: Subscriber) {
    if (!subscribers.delete(subscriber)) return
    subscriber.seat.leave()
    const key = keyOf(subscriber.filter)
    const others = byFilter.get(key)
    others?.delete(subscriber)
    if (others?.size !== 0) return
    byFilter.delete(key)
    for (const selector of selectorsOf(subscriber.filter)) {
      const keys = keysBySelector.get(selector)
      keys?.delete(key)
      if (keys?.size === 0) keysBySelector.delete(selector)
    }
  }

  /** Returns the keys of the filters that select an event. A reorg reaches every stream. */
  function keysOf(event: LoggedEvent): Iterable<string> {
    if (event.type === 'reorg') return byFilter.keys()
    return new Set(selectorsOfEvent(event).flatMap(selector => [...(keysBySelector.get(selector) ?? [])]))
  }

  function enqueue(subscriber: Subscriber, frame: Uint8Array) {
    try {
      subscriber.controller.enqueue(frame)
    } catch {
      remove(subscriber) // the client closed the stream
    }
  }

  const isFull = ({ controller }: Subscriber) => (controller.desiredSize ?? 0) <= 0
  const newestSeq = () => window.newest()?.seq ?? 0

  /** Sends missed events from the log until the buffer is full or none is left. */
  async function sendMissed(subscriber: Subscriber) {
    while (subscriber.isBehind && !isFull(subscriber) && subscribers.has(subscriber)) {
      const { filter, sentThrough, seat } = subscriber
      const { events, through } =
        window.page(filter, sentThrough, EVENTS_PER_READ) ??
        (await readMissed(seat.client, filter, sentThrough, EVENTS_PER_READ))
      subscriber.stalledSince = undefined
      for (const event of events) {
        if (isFull(subscriber)) return
        enqueue(subscriber, frames.of(event, filter))
        subscriber.sentThrough = event.seq
      }
      subscriber.sentThrough = through
      subscriber.isBehind = through < newestSeq()
    }
  }

  /** Sends events to the streams of one filter in one write each, which costs as much as the write of one event. */
  async function sendNew(events: readonly LoggedEvent[], streams: Iterable<Subscriber>) {
    /** What streams get that lack the same number of events. */
    const writes = new Map<number, Uint8Array>()
    for (const subscriber of streams) {
      const { filter, sentThrough } = subscriber
      const unsent = events.filter(({ seq }) => seq > sentThrough)
      const last = unsent.at(-1)
      if (subscriber.isBehind || last === undefined) continue
      if (isFull(subscriber)) {
        subscriber.isBehind = true
        continue
      }
      const write = writes.get(unsent.length) ?? concat(unsent.map(event => frames.of(event, filter)))
      writes.set(unsent.length, write)
      enqueue(subscriber, write)
      subscriber.sentThrough = last.seq
      await afterWrite()
    }
  }

  async function publishRound() {
    const selected = new Map<string, LoggedEvent[]>()
    for (const event of unpublished)
      for (const key of keysOf(event)) {
        const earlier = selected.get(key)
        if (earlier) earlier.push(event)
        else selected.set(key, [event])
      }
    unpublished = []
    // Streams that open during the round are not part of it: they start with its events, or read them as missed.
    const writes = [...selected].map(([key, events]) => ({ events, streams: byFilter.get(key) ?? [] }))
    for (const { events, streams } of writes) for (const group of writesOf(events)) await sendNew(group, streams)
  }

  async function heartbeatRound(now: number) {
    await publishRound() // the newest position would move clients past events that they have not got
    const newest = window.newest()
    for (const subscriber of [...subscribers]) {
      if (!subscribers.has(subscriber)) continue
      if (isFull(subscriber) || subscriber.isBehind) {
        subscriber.stalledSince ??= now
        if (now - subscriber.stalledSince >= MAX_STALL_MS)
          disconnect(subscriber, new Error('The client has not read its events for too long.'))
        continue
      }
      subscriber.stalledSince = undefined
      if (now + HEARTBEAT_TICK_MS <= subscriber.heartbeatAt) continue // the next call comes in time
      subscriber.heartbeatAt = now + subscriber.heartbeatSeconds * 1_000
      // An older position would make the client resume before its last event.
      const hasMoved = newest !== undefined && newest.seq > subscriber.sentThrough
      enqueue(subscriber, hasMoved ? encodePosition(newest.id) : HEARTBEAT)
      if (hasMoved) subscriber.sentThrough = newest.seq
      await afterWrite()
    }
  }

  function disconnect(subscriber: Subscriber, error: unknown) {
    remove(subscriber)
    subscriber.controller.error(error)
  }

  return {
    /** How many streams are open or opening. */
    size: seats.size,

    /**
     * Takes a place for a stream of a client, of whose address there may be `maxStreams`, or returns why there is none.
     * Where all are taken, and other objects have none either (`isLast`), the network that holds most gives back its
     * oldest.
     */
    reserve(
      client: Networks,
      maxStreams: number,
      isLast = true,
    ): Seat | 'TOO_MANY_STREAMS' | 'TOO_MANY_STREAMS_OF_CLIENT' {
      if (!seats.hasRoom(client, maxStreams)) return 'TOO_MANY_STREAMS_OF_CLIENT'
      if (seats.isFull()) {
        const holder = isLast ? seats.holderOfMost(client) : undefined
        const oldest = holder && [...subscribers].find(({ seat }) => seat.client === holder)
        if (!oldest) return 'TOO_MANY_STREAMS'
        disconnect(oldest, new Error('Others have no stream, so the network that has most gave this one back.'))
      }
      seats.add(client)
      let hasLeft = false
      return {
        client: client.at(-1) ?? '',
        leave() {
          if (hasLeft) return
          hasLeft = true
          seats.remove(client)
        },
      }
    },

    /** Also forgets the events that were not sent yet. */
    disconnectAll(error: Error) {
      unpublished = []
      for (const subscriber of subscribers) disconnect(subscriber, error)
    },

    /**
     * Opens a stream of the events after a row of the log. `id` is the id that the client resumed from, or the row's.
     */
    open(
      request: Pick<Subscriber, 'filter' | 'seat' | 'heartbeatSeconds'>,
      after: number,
      id: string,
    ): ReadableStream<Uint8Array> {
      let subscriber: Subscriber
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            const isBehind = after < newestSeq()
            const heartbeatAt = Date.now() + request.heartbeatSeconds * 1_000
            subscriber = { ...request, controller, sentThrough: after, isBehind, heartbeatAt, stalledSince: undefined }
            add(subscriber)
            enqueue(subscriber, concat([RETRY, encodePosition(id)]))
          },
          // An error, such as a log that cannot be read, ends the stream, and the client resumes.
          pull() {
            subscriber.stalledSince = undefined
            if (subscriber.isBehind) return sendMissed(subscriber).catch(error => disconnect(subscriber, error))
          },
          cancel: () => remove(subscriber),
        },
        new ByteLengthQueuingStrategy({ highWaterMark: MAX_BUFFERED_BYTES }),
      )
    },

    /** Sends new events of the log to the streams that select them. A full stream reads them from the log later. */
    publish(events: readonly LoggedEvent[]): Promise<void> {
      unpublished.push(...events)
      return inOrder(publishRound)
    },

    /**
     * Sends the heartbeats that are due at a time (epoch milliseconds) to the streams that keep up, and disconnects the
     * clients that stopped reading.
     */
    sendHeartbeats: singleFlight((now: number) => inOrder(() => heartbeatRound(now))),
  }
}

/** Returns a function that is called after each write, and pauses after every few. */
function createPacer() {
  let writes = 0
  return async () => {
    if (++writes % STREAMS_PER_TURN === 0) await sleep(0)
  }
}

/** Encodes each event once. A reorg is parsed once, and encoded once for each filter that selects withdrawn events. */
function createFrames() {
  const frames = new WeakMap<LoggedEvent, Uint8Array>()
  const reorgs = new WeakMap<LoggedEvent, ParsedReorg>()
  const framesOfReorg = new WeakMap<LoggedEvent, Map<string, Uint8Array>>()

  function ofReorg(event: LoggedEvent, filter: EventFilter): Uint8Array {
    const reorg = reorgs.get(event) ?? parseReorg(event.data)
    reorgs.set(event, reorg)
    const byKey = framesOfReorg.get(event) ?? new Map<string, Uint8Array>()
    framesOfReorg.set(event, byKey)
    const selected = reorg.select(filter)
    const key = selected.length === 0 ? NONE : keyOf(filter)
    const frame = byKey.get(key) ?? encodeEvent(event, reorg.shown(selected))
    byKey.set(key, frame)
    return frame
  }

  return {
    of(event: LoggedEvent, filter: EventFilter): Uint8Array {
      if (event.type === 'reorg') return ofReorg(event, filter)
      const frame = frames.get(event) ?? encodeEvent(event, event.data)
      frames.set(event, frame)
      return frame
    },
  }
}

/** Groups consecutive events by what one write takes. */
function* writesOf(events: readonly LoggedEvent[]): Iterable<LoggedEvent[]> {
  let group: LoggedEvent[] = []
  let length = 0
  for (const event of events) {
    length += event.data.length
    if (group.length > 0 && length > MAX_WRITE) {
      yield group
      group = []
      length = event.data.length
    }
    group.push(event)
  }
  yield group
}

const NONE = '-'
const ALL = '*'
const priceOf = (token: Address) => `price ${token}`

/** Returns what a filter selects: an agent, a vault or all agents, and prices of tokens. */
function selectorsOf({ agentId, vault, tokens }: EventFilter): string[] {
  const subject = agentId === undefined ? (vault ?? (tokens === undefined ? ALL : undefined)) : `${agentId}`
  return [...(subject === undefined ? [] : [subject]), ...(tokens ?? []).map(priceOf)]
}
const keyOf = (filter: EventFilter) => selectorsOf(filter).join()

function selectorsOfEvent({ agentId, vault, token }: LoggedEvent): string[] {
  if (token !== undefined) return [priceOf(token)]
  return [ALL, ...(agentId === undefined ? [] : [`${agentId}`]), ...(vault === undefined ? [] : [vault])]
}

const encoder = new TextEncoder()

const encodeEvent = ({ id, type }: { id: string; type: string }, data: string) =>
  encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`)

/** Starts the first frame of a stream, its position. */
const RETRY = encoder.encode(`retry: ${CLIENT_RETRY_MS}\n`)
const HEARTBEAT = encoder.encode(': heartbeat\n\n')

/**
 * Encodes a position, from which a client resumes although no event followed. Libraries drop ids of frames without
 * data.
 */
const encodePosition = (id: string) =>
  encodeEvent({ id, type: 'position' }, JSON.stringify({ id, blockNumber: `${parseEventId(id).block}` }))
