import { withDeadline } from '../concurrency.ts'

/** An event of a stream, parsed. */
type ReceivedEvent = { id: string; type: string; data: Record<string, unknown> }

/** The first event of a stream that was waited for, if it came in time, and the id after which to resume. */
type NextEvent = { event: ReceivedEvent | undefined; lastEventId: string | undefined }

/** Reads a stream until an event of one of the types arrives, or until a time in epoch milliseconds, and closes it. */
export async function nextEvent(
  stream: ReadableStream<Uint8Array>,
  types: readonly string[] | undefined,
  until: number,
): Promise<NextEvent> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let buffer = ''
  let lastEventId: string | undefined
  try {
    for (;;) {
      const read = reader.read()
      read.catch(() => {}) // it fails when the reader is cancelled
      const { value, done } = await withDeadline(read, until, () => ({ value: undefined, done: true }) as const)
      if (done) return { event: undefined, lastEventId }
      buffer += decoder.decode(value, { stream: true })
      const frames = buffer.split('\n\n')
      buffer = frames.pop() ?? ''
      for (const frame of frames) {
        const { id = lastEventId, event: type, data } = fieldsOf(frame)
        lastEventId = id
        if (id === undefined || type === undefined || data === undefined || type === 'position') continue
        if (types === undefined || types.includes(type))
          return { event: { id, type, data: JSON.parse(data) }, lastEventId }
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const fieldsOf = (frame: string): Partial<Record<'id' | 'event' | 'data', string>> =>
  Object.fromEntries([...frame.matchAll(/^(id|event|data): (.*)$/gm)].map(([, name, value]) => [name, value]))
