import type { LogCursor } from '../live/store.ts'
import type { LogPage, SelectedEvent } from '../live/webhook-notices.ts'
import { logFailure } from '../log.ts'
import { type AttemptOutcome, MAX_RETRY_MS, retryDelayMs } from './attempt.ts'
import type { StoredWebhook, WebhookStore } from './store.ts'

/** Attempts of one webhook per minute; further events wait for the next minute. */
export const MAX_ATTEMPTS_PER_MINUTE = 120
const MINUTE_MS = 60_000
const UNREADABLE_LOG_RETRY_MS = 5_000
/** How long one run goes on with a backlog or new events; the next alarm continues. */
const MAX_RUN_MS = 60_000
/**
 * A webhook that has failed for this long takes no place of the deployment. It is still retried, and then takes one
 * again.
 */
const LONG_FAILURE_MS = 3_600_000

/** Returns whether a webhook takes one of the deployment's places. */
export const takesPlace = ({ state, failure }: StoredWebhook): boolean =>
  state === 'active' && (failure === undefined || failure.lastAttemptAt - failure.since < LONG_FAILURE_MS)

export type Delivery = ReturnType<typeof createDelivery>

/** What deliveries need. Times are in milliseconds. */
type DeliveryParts = {
  agentId: number
  store: WebhookStore
  readLog: (webhook: StoredWebhook) => Promise<LogPage>
  post: (webhook: StoredWebhook, message: WebhookMessage) => Promise<AttemptOutcome>
  now: () => number
  random: () => number
  /** Called when a webhook takes a place again, or none any more. */
  onPlacesChanged: () => void
}

/**
 * Delivers the log's events to webhooks: at least once, in order for each webhook. The cursor moves only after a
 * success, so an object that dies in between repeats at most the attempt that was in flight.
 */
export function createDelivery({ agentId, store, readLog, post, now, random, onPlacesChanged }: DeliveryParts) {
  let notices = 0
  /** The webhooks that are being delivered to. */
  const runs = new Map<string, Promise<void>>()
  let runsEndAt = 0

  /**
   * Marks every webhook that waits for events as due, and starts to deliver if others are being delivered to already.
   */
  function wakeAll() {
    notices++
    for (const { id, state, nextAttemptAt } of store.list())
      if (state === 'active' && nextAttemptAt === undefined) store.update(id, { nextAttemptAt: now() })
    if (runs.size > 0) startDue()
  }

  /**
   * Delivers to all webhooks that are due, at the same time, and to those that become due meanwhile; a slow receiver
   * holds up only its own events.
   */
  async function deliverDue(): Promise<void> {
    if (runs.size === 0) runsEndAt = now() + MAX_RUN_MS
    startDue()
    while (runs.size > 0) await Promise.race(runs.values())
  }

  function startDue() {
    if (now() >= runsEndAt) return
    for (const { id } of store.list())
      if (!runs.has(id) && dueWebhook(id))
        runs.set(
          id,
          deliverTo(id).finally(() => runs.delete(id)),
        )
  }

  async function deliverTo(id: string): Promise<void> {
    for (let webhook = dueWebhook(id); webhook && now() < runsEndAt; webhook = dueWebhook(id)) {
      const noticesBefore = notices
      const page = await readLog(webhook).catch(error => logFailure('webhook log unreadable', error))
      if (page === undefined) return void store.update(id, { nextAttemptAt: now() + UNREADABLE_LOG_RETRY_MS })
      for (const message of messagesOf(page, { agentId, ...webhook })) if (!(await deliver(id, message))) return
      // Rows of other agents and other types are behind the webhook now.
      if (dueWebhook(id) === undefined) return
      const isDone = page.kind === 'events' && page.isComplete && notices === noticesBefore
      store.update(id, { cursor: page.cursor, ...(isDone && { nextAttemptAt: undefined }) })
    }
  }

  /**
   * Returns a webhook if it may be called now. It may have been deleted, disabled or changed since it was last read.
   */
  function dueWebhook(id: string): StoredWebhook | undefined {
    const webhook = store.find(id)
    const isDue = webhook?.state === 'active' && webhook.nextAttemptAt !== undefined && webhook.nextAttemptAt <= now()
    return isDue ? webhook : undefined
  }

  /** Makes one attempt. Returns whether the next message may follow. */
  async function deliver(id: string, message: WebhookMessage): Promise<boolean> {
    const webhook = dueWebhook(id)
    if (webhook === undefined) return false
    const waitUntil = count(webhook)
    if (waitUntil !== undefined) {
      store.update(id, { nextAttemptAt: waitUntil })
      return false
    }
    const outcome = await post(webhook, message)
    if (store.find(id)?.state !== 'active') return false
    if (outcome.kind === 'delivered') {
      if (!takesPlace(webhook)) onPlacesChanged()
      store.update(id, { cursor: message.cursor, failure: undefined, lastDeliveredAt: now() })
      return true
    }
    recordFailure(id, message, outcome)
    return false
  }

  /** Counts an attempt. Returns when the next one may start instead, if the minute is used up. */
  function count({ id, minute }: StoredWebhook): number | undefined {
    const time = now()
    const current = minute && minute.startedAt + MINUTE_MS > time ? minute : { startedAt: time, attempts: 0 }
    if (current.attempts >= MAX_ATTEMPTS_PER_MINUTE) return current.startedAt + MINUTE_MS
    store.update(id, { minute: { ...current, attempts: current.attempts + 1 } })
    return undefined
  }

  function recordFailure(id: string, message: WebhookMessage, outcome: Exclude<AttemptOutcome, { kind: 'delivered' }>) {
    if (outcome.kind === 'gone') return disable(id, 'The receiver responded with status 410: it wants no more events.')
    const time = now()
    const before = store.find(id)?.failure
    const failure = {
      messageId: message.id,
      attempts: (before?.attempts ?? 0) + 1,
      since: before?.since ?? time,
      lastAttemptAt: time,
      status: outcome.status,
      problem: outcome.problem,
    }
    const givenUpAt = failure.since + MAX_RETRY_MS
    const nextAttemptAt = Math.min(time + retryDelayMs(failure.attempts, random(), outcome.retryAfterMs), givenUpAt)
    const failing = store.update(id, { failure, nextAttemptAt })
    if (failing && !takesPlace(failing)) onPlacesChanged()
    if (time >= givenUpAt) disable(id, `Event ${message.id} could not be delivered for 48 hours: ${outcome.problem}.`)
  }

  function disable(id: string, disabledReason: string) {
    store.update(id, { state: 'disabled', disabledReason, nextAttemptAt: undefined })
    onPlacesChanged()
  }

  return {
    wakeAll,
    deliverDue,
    count,
    disable,
    /** Returns when the next webhook is due; undefined if none is. */
    nextDueAt(): number | undefined {
      const times = store.list().flatMap(({ state, nextAttemptAt }) => (state === 'active' && nextAttemptAt) || [])
      return times.length > 0 ? Math.min(...times) : undefined
    },
  }
}

/**
 * What a webhook posts: the id that stays the same in every attempt, the JSON, and the cursor once it was delivered.
 */
export type WebhookMessage = { id: string; body: string; cursor: LogCursor }

/** Types that every webhook gets: without them a receiver would keep events that no longer hold. */
const NOTICE_TYPES: readonly string[] = ['reorg']

/** Returns the messages of a page of the log, in order. Without event types, every event is one. */
function messagesOf(
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

export const testBody = (agentId: number, now: number): string => encode('test', now, { agentId: `${agentId}` })

const encode = (type: string, time: number, data: object) => JSON.stringify({ type, timestamp: toIsoTime(time), data })

const toIsoTime = (ms: number) => new Date(ms).toISOString()
