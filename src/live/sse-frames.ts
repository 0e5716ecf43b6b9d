import type { LoggedEvent } from './event.ts'

const encoder = new TextEncoder()

/** Encodes an event with the data that streams show. */
export const encodeEvent = ({ id, type }: Pick<LoggedEvent, 'id' | 'type'>, data: string) =>
  encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`)

/** Encodes the first frame of a stream. Its id lets a client resume even if no event follows. */
export const encodeOpening = (id: string, retryMs: number) => encoder.encode(`retry: ${retryMs}\nid: ${id}\n: open\n\n`)

/** Encodes a keep-alive comment. Its id is not an event; it only moves the position a client resumes from. */
export const encodeHeartbeat = (id: string) => encoder.encode(`id: ${id}\n: heartbeat\n\n`)
