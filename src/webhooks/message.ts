import type { LogPage, SelectedEvent } from '../live/read-log.ts'
import type { LogCursor } from '../live/store.ts'

/** What a webhook posts: the id that stays the same in every attempt, the JSON, and the cursor once it was delivered. */
export type WebhookMessage = { id: string; body: string; cursor: LogCursor }

/** Types that every webhook gets: without them a receiver would keep events that no longer hold. */
const NOTICE_TYPES: readonly string[] = ['reorg']

/** Returns the messages of a page of the log, in order. Without event types, every event is one. */
export function messagesOf(
  page: LogPage,
  { agentId, eventTypes, cursor }: { agentId: number; eventTypes: readonly string[]; cursor: LogCursor },
): WebhookMessage[] {
  if (page.kind === 'gap') return [gapMessage(page, agentId, cursor)]
  const isWanted = ({ type }: SelectedEvent) =>
    eventTypes.length === 0 || eventTypes.includes(type) || NOTICE_TYPES.includes(type)
  return page.events.filter(isWanted).map(event => ({
    id: event.id,
    // The event's own JSON is embedded as it is.
    body: `{"type":"${event.type}","timestamp":"${toIsoTime(event.loggedAt)}","data":${event.data}}`,
    cursor: event.cursor,
  }))
}

/** Says that the log no longer has the events after `after`; what follows `resumedAfter` is complete. */
function gapMessage(page: Extract<LogPage, { kind: 'gap' }>, agentId: number, { id }: LogCursor): WebhookMessage {
  const { cursor, loggedAt } = page
  const data = { agentId: `${agentId}`, after: id, resumedAfter: cursor.id }
  return { id: `gap-${cursor.id}`, body: encode('gap', loggedAt, data), cursor }
}

/** Returns the body of a test. */
export const testBody = (agentId: number, now: number): string => encode('test', now, { agentId: `${agentId}` })

const encode = (type: string, time: number, data: object) => JSON.stringify({ type, timestamp: toIsoTime(time), data })

const toIsoTime = (ms: number) => new Date(ms).toISOString()
