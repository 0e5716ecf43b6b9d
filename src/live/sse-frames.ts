import { type EventFilter, isSelected, type LoggedEvent, type WithdrawnEvent } from './event.ts'

const encoder = new TextEncoder()

/** Encodes an event for streams with the given filter. */
export function encodeEvent({ id, type, data }: Pick<LoggedEvent, 'id' | 'type' | 'data'>, filter: EventFilter) {
  const body = type === 'reorg' ? selectWithdrawn(data, filter) : data
  return encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${body}\n\n`)
}

/** Returns a reorg's JSON with the ids of those withdrawn events that the filter selects. */
function selectWithdrawn(data: string, filter: EventFilter): string {
  const { withdrawn, ...rest } = JSON.parse(data) as { withdrawn: WithdrawnEvent[] }
  return JSON.stringify({
    ...rest,
    withdrawn: withdrawn.filter(event => isSelected(filter, event)).map(({ id }) => id),
  })
}

/** Encodes the first frame of a stream. Its id lets a client resume even if no event follows. */
export const encodeOpening = (id: string, retryMs: number) => encoder.encode(`retry: ${retryMs}\nid: ${id}\n: open\n\n`)

/** Encodes a keep-alive comment. Its id is not an event; it only moves the position a client resumes from. */
export const encodeHeartbeat = (id: string) => encoder.encode(`id: ${id}\n: heartbeat\n\n`)
