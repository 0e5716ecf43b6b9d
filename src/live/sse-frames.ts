import { dataFor, type EventFilter, type LoggedEvent } from './event.ts'

const encoder = new TextEncoder()

/** Encodes an event for streams with the given filter. */
export const encodeEvent = (event: Pick<LoggedEvent, 'id' | 'type' | 'data'>, filter: EventFilter) =>
  encoder.encode(`id: ${event.id}\nevent: ${event.type}\ndata: ${dataFor(event, filter)}\n\n`)

/** Encodes the first frame of a stream. Its id lets a client resume even if no event follows. */
export const encodeOpening = (id: string, retryMs: number) => encoder.encode(`retry: ${retryMs}\nid: ${id}\n: open\n\n`)

/** Encodes a keep-alive comment. Its id is not an event; it only moves the position a client resumes from. */
export const encodeHeartbeat = (id: string) => encoder.encode(`id: ${id}\n: heartbeat\n\n`)
