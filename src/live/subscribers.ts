import { type Entry, frameOf, heartbeatOf, openingOf, type Subject } from './event.ts'
import type { Log } from './store.ts'

export type Audience = ReturnType<typeof createAudience>

/** What a stream may have waiting; who reads more slowly is sent the rest from the log, as it reads. */
const QUEUE_BYTES = 32 * 1024
const PAGE = 50
/** A client that has not read anything for so many heartbeats is not there any more. */
const PATIENCE_HEARTBEATS = 4
const RETRY_MS = 1_000
/** More would be more than the memory of one object is sure to hold. */
const MOST_STREAMS = 4_000

type Stream = {
  subject: Subject
  controller: ReadableStreamDefaultController<Uint8Array>
  /** Everything up to this row of the log was sent, or is of no matter. */
  after: number
  /** Reads from the log, until it has caught up with what is sent to everybody. */
  isBehind: boolean
  /** Heartbeats in a row at which nothing could be sent. */
  stalls: number
}

/** All open streams. An event is encoded once, and costs a stream that is read in time one reference to it. */
export function createAudience(log: Log) {
  const streams = new Set<Stream>()
  const bySubject = new Map<string, Set<Stream>>()

  function leave(stream: Stream) {
    streams.delete(stream)
    const key = keyOf(stream.subject)
    const others = bySubject.get(key)
    others?.delete(stream)
    if (others?.size === 0) bySubject.delete(key)
  }

  function enqueue(stream: Stream, frame: Uint8Array) {
    try {
      stream.controller.enqueue(frame)
    } catch {
      leave(stream) // it was closed under us
    }
  }

  const isFull = ({ controller }: Stream) => (controller.desiredSize ?? 0) <= 0

  /** Sends from the log what a stream has not had, until it is full or has everything. */
  function catchUp(stream: Stream) {
    while (stream.isBehind && !isFull(stream)) {
      const { entries, through } = log.page(stream.subject, stream.after, PAGE)
      for (const entry of entries) enqueue(stream, frameOf(entry, stream.subject))
      stream.after = through
      stream.isBehind = entries.length === PAGE && streams.has(stream)
    }
  }

  return {
    size: () => streams.size,
    isFull: () => streams.size >= MOST_STREAMS,

    /** A stream of what comes after a row of the log; `id` is that row's, or one that stands for it. */
    open(subject: Subject, after: number, id: string): ReadableStream<Uint8Array> {
      let stream: Stream
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            stream = { subject, controller, after, isBehind: true, stalls: 0 }
            streams.add(stream)
            const key = keyOf(subject)
            bySubject.set(key, (bySubject.get(key) ?? new Set()).add(stream))
            enqueue(stream, openingOf(id, RETRY_MS))
            catchUp(stream)
          },
          pull() {
            stream.stalls = 0 // something was read
            catchUp(stream)
          },
          cancel: () => leave(stream),
        },
        new ByteLengthQueuingStrategy({ highWaterMark: QUEUE_BYTES }),
      )
    },

    /** Sends new rows of the log to whom they concern; who has no room reads them from the log later. */
    publish(entries: readonly Entry[]) {
      for (const entry of entries)
        for (const key of keysFor(entry, bySubject)) {
          let frame: Uint8Array | undefined
          for (const stream of bySubject.get(key) ?? []) {
            if (stream.isBehind) continue
            if (isFull(stream)) stream.isBehind = true
            else {
              frame ??= frameOf(entry, stream.subject)
              enqueue(stream, frame)
              stream.after = entry.seq
            }
          }
        }
    },

    /** Keeps the streams that are read from being taken for dead, and lets go of those that are not read. */
    beat() {
      const frame = heartbeatOf(log.tip().id)
      for (const stream of streams) {
        if (!isFull(stream) && !stream.isBehind) {
          stream.stalls = 0
          enqueue(stream, frame)
        } else if (++stream.stalls > PATIENCE_HEARTBEATS) {
          leave(stream)
          stream.controller.error(new Error('not read in time'))
        }
      }
    },
  }
}

const keyOf = ({ agentId, vault }: Subject) => (agentId === undefined ? (vault ?? '*') : `${agentId}`)

/** The subjects that an event concerns: a reorg concerns all. */
const keysFor = ({ type, agentId, vault }: Entry, all: ReadonlyMap<string, unknown>): Iterable<string> =>
  type === 'reorg' ? all.keys() : ['*', ...(agentId === undefined ? [] : [`${agentId}`]), ...(vault ? [vault] : [])]
