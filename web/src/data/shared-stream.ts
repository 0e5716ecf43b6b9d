import { followEvents, LOOK_MS, type StreamMessage, type Subject } from './event-stream.ts'

/** How long the tab that holds the stream may say nothing before another one takes over. */
const MAX_SILENCE_MS = 3 * LOOK_MS

/**
 * Follows the events of a subject until the signal ends it, with one stream for all visible tabs of the browser that
 * follow the same: the tab that holds the lock has it, and tells the others. Where a browser has no locks, each tab has
 * its own.
 */
export function followShared(subject: Subject, signal: AbortSignal, onMessage: (message: StreamMessage) => void): void {
  if (navigator.locks === undefined) {
    followEvents(subject, { wasLost: false }, signal, onMessage)
    return
  }
  const name = `events ${JSON.stringify(subject)}`
  const channel = new BroadcastChannel(name)
  let [lastId, isJoined] = [undefined as string | undefined, false]
  let state: StreamMessage | undefined
  let heardAt = Date.now()
  /** Ends the stream of this tab; undefined while it has none. */
  let term: AbortController | undefined
  let waiting = new AbortController()

  function take(message: StreamMessage) {
    if (message.kind === 'event') lastId = message.id
    if (message.kind === 'state') state = message
    onMessage(message)
  }
  channel.onmessage = ({ data }: MessageEvent<StreamMessage | 'who'>) => {
    if (data === 'who') {
      if (term && state) channel.postMessage(state)
      return
    }
    heardAt = Date.now()
    isJoined = true
    if (!term) take(data)
  }

  async function lead() {
    const own = new AbortController()
    term = own
    signal.addEventListener('abort', () => own.abort())
    const beat = setInterval(() => state && channel.postMessage(state), LOOK_MS)
    const ended = new Promise(resolve => own.signal.addEventListener('abort', resolve))
    // A stream that had no event since this tab joined leaves no place to resume at.
    const start = { lastEventId: lastId, wasLost: isJoined && lastId === undefined }
    const followed = followEvents(subject, start, own.signal, message => {
      if (own.signal.aborted) return
      take(message)
      channel.postMessage(message)
    })
    await Promise.race([followed, ended])
    clearInterval(beat)
    if (term === own) term = undefined
  }
  function queue(options: LockOptions) {
    navigator.locks.request(name, options, lead).catch(() => {
      // Another tab took over, or this tab no longer waits. The other one has just spoken.
      term?.abort()
      heardAt = Date.now()
      if (!signal.aborted && !('signal' in options && options.signal?.aborted)) wait()
    })
  }
  function wait() {
    waiting = new AbortController()
    queue({ signal: waiting.signal })
  }
  const watch = setInterval(() => {
    if (term || Date.now() - heardAt < MAX_SILENCE_MS) return
    heardAt = Date.now()
    waiting.abort()
    queue({ steal: true })
  }, LOOK_MS)
  signal.addEventListener('abort', () => {
    clearInterval(watch)
    waiting.abort()
    channel.close()
  })
  wait()
  channel.postMessage('who')
}
