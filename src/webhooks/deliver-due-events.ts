import { singleFlight } from '../concurrency.ts'
import type { LogPage } from '../live/read-log.ts'
import type { LogCursor } from '../live/store.ts'
import { logFailure } from '../log.ts'
import type { AttemptOutcome } from './attempt.ts'
import { messagesOf, type WebhookMessage } from './message.ts'
import { MAX_RETRY_MS, retryDelayMs } from './retry-schedule.ts'
import type { WebhookStore } from './store.ts'
import type { StoredWebhook } from './webhook-record.ts'

/** Attempts of one webhook per minute; further events wait for the next minute. */
export const MAX_ATTEMPTS_PER_MINUTE = 120
const MINUTE_MS = 60_000
const UNREADABLE_LOG_RETRY_MS = 5_000
/** How long one run goes on with a backlog; the next alarm continues. */
const MAX_RUN_MS = 60_000

export type Delivery = ReturnType<typeof createDelivery>

/** What deliveries need. Times are in milliseconds. */
type DeliveryParts = {
  agentId: number
  store: WebhookStore
  readLog: (cursor: LogCursor) => Promise<LogPage>
  post: (webhook: StoredWebhook, message: WebhookMessage) => Promise<AttemptOutcome>
  now: () => number
  random: () => number
}

/**
 * Delivers the log's events to webhooks: at least once, in order for each webhook. The cursor moves only after a success, so
 * an object that dies in between repeats at most the attempt that was in flight.
 */
export function createDelivery({ agentId, store, readLog, post, now, random }: DeliveryParts) {
  let notices = 0

  /** Marks every webhook that waits for events as due. */
  function wakeAll() {
    notices++
    for (const { id, state, nextAttemptAt } of store.list())
      if (state === 'active' && nextAttemptAt === undefined) store.update(id, { nextAttemptAt: now() })
  }

  /** Delivers to all webhooks that are due, at the same time; a slow receiver holds up only its own events. */
  const deliverDue = singleFlight(async (): Promise<void> => {
    await Promise.all(store.list().map(({ id }) => deliverTo(id)))
  })

  async function deliverTo(id: string): Promise<void> {
    const endsAt = now() + MAX_RUN_MS
    for (let webhook = dueWebhook(id); webhook && now() < endsAt; webhook = dueWebhook(id)) {
      const noticesBefore = notices
      const page = await readLog(webhook.cursor).catch(error => logFailure('webhook log unreadable', error))
      if (page === undefined) return void store.update(id, { nextAttemptAt: now() + UNREADABLE_LOG_RETRY_MS })
      for (const message of messagesOf(page, { agentId, ...webhook })) if (!(await deliver(id, message))) return
      // Rows of other agents and other types are behind the webhook now.
      if (dueWebhook(id) === undefined) return
      const isDone = page.kind === 'events' && page.isComplete && notices === noticesBefore
      store.update(id, { cursor: page.cursor, ...(isDone && { nextAttemptAt: undefined }) })
    }
  }

  /** Returns a webhook if it may be called now. It may have been deleted, disabled or changed since it was last read. */
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
    store.update(id, { failure, nextAttemptAt })
    if (time >= givenUpAt) disable(id, `Event ${message.id} could not be delivered for 48 hours: ${outcome.problem}.`)
  }

  function disable(id: string, disabledReason: string) {
    store.update(id, { state: 'disabled', disabledReason, nextAttemptAt: undefined })
  }

  return {
    wakeAll,
    deliverDue,
    count,
    /** Returns when the next webhook is due; undefined if none is. */
    nextDueAt(): number | undefined {
      const times = store.list().flatMap(({ state, nextAttemptAt }) => (state === 'active' && nextAttemptAt) || [])
      return times.length > 0 ? Math.min(...times) : undefined
    },
  }
}
