import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** An event as a client receives it, with its data parsed. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads any field of an event
export type ReceivedEvent = { id: string; event: string; data: any }

/** Listens to an event stream. It reads only while a test waits, and one test at a time may wait. */
export type StreamListener = {
  response: Response
  /** The events read so far, oldest first, without the stream's positions. */
  events: ReceivedEvent[]
  /** The positions read so far. The first one opens the stream. */
  positions: ReceivedEvent[]
  comments: string[]
  /** The id that a client would resume from: that of the last event or position. */
  lastEventId(): string
  /** Reads until the stream has opened. */
  open(): Promise<unknown>
  /** Reads until `find` returns a value, and returns that. Throws if the stream ends first. */
  until<T>(find: () => T | undefined | false): Promise<T>
  /** Returns the next event of a type, each event once. */
  next(type: string): Promise<ReceivedEvent>
  leave(): Promise<void>
}

/** Reads the event stream in a response's body. */
export function listen(response: Response): StreamListener {
  if (response.body === null) throw new Error(`The response with status ${response.status} has no body.`)
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>
  const events: ReceivedEvent[] = []
  const positions: ReceivedEvent[] = []
  const comments: string[] = []
  const taken = new Set<ReceivedEvent>()
  let lastEventId = ''
  const parser = createParser({
    onEvent: ({ id = '', event = 'message', data }: EventSourceMessage) => {
      lastEventId = id
      ;(event === 'position' ? positions : events).push({ id, event, data: JSON.parse(data) })
    },
    onComment: comment => comments.push(comment.trim()),
  })
  const listener: StreamListener = {
    response,
    events,
    positions,
    comments,
    lastEventId: () => lastEventId,
    open: () => listener.until(() => positions.length > 0),
    async until(find) {
      for (;;) {
        const found = find()
        if (found) return found
        const { value, done } = await reader.read()
        if (done) throw new Error(`The stream ended after ${JSON.stringify(events)}`)
        parser.feed(value)
      }
    },
    async next(type) {
      const event = await listener.until(() => events.find(event => event.event === type && !taken.has(event)))
      taken.add(event)
      return event
    },
    leave: () => reader.cancel(),
  }
  return listener
}
