import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** An event as a client gets it, its data parsed. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads any field of an event
export type StreamEvent = { id: string; event: string; data: any }

/** A stream of events that is read as the test asks for them, one reader at a time. */
export type Listener = {
  response: Response
  /** Everything that was read, oldest first. */
  events: StreamEvent[]
  comments: string[]
  /** The id with which a browser would come back: heartbeats move it too. */
  lastEventId(): string
  /** Reads until something is as wanted, which may have been read already; throws when the stream ends before. */
  until<T>(find: () => T | undefined | false): Promise<T>
  /** The next event of a kind that has not been asked for yet. */
  next(event: string): Promise<StreamEvent>
  leave(): Promise<void>
}

/** Listens to an event stream. */
export function listen(response: Response): Listener {
  if (response.body === null) throw new Error(`no stream: ${response.status}`)
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>
  const events: StreamEvent[] = []
  const comments: string[] = []
  const taken = new Set<StreamEvent>()
  let lastEventId = ''
  const parser = createParser({
    onEvent: ({ id = '', event = 'message', data }: EventSourceMessage) =>
      events.push({ id, event, data: JSON.parse(data) }),
    onComment: comment => comments.push(comment.trim()),
  })
  const listener: Listener = {
    response,
    events,
    comments,
    lastEventId: () => lastEventId,
    async until(find) {
      for (;;) {
        const found = find()
        if (found) return found
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream has ended after ${JSON.stringify(events)}`)
        lastEventId = [...value.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? lastEventId
        parser.feed(value)
      }
    },
    async next(kind) {
      const event = await listener.until(() => events.find(event => event.event === kind && !taken.has(event)))
      taken.add(event)
      return event
    },
    leave: () => reader.cancel(),
  }
  return listener
}
