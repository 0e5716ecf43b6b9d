import { singleFlightAgain } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import { dataFor, type EventFilter, type LoggedEvent } from './event.ts'
import type { EventLog, LogCursor } from './store.ts'

/** Returns the object that holds an agent's webhooks. */
export const webhooksOf = (namespace: Env['WEBHOOKS'], { id }: { id: number }, agentId: bigint | number) =>
  namespace.getByName(`${id}:${agentId}`)

const SCHEMA = `
  -- Agents with webhooks: how many, and whether their object still has to hear of an event.
  CREATE TABLE IF NOT EXISTS webhook_agent (
    agent INTEGER PRIMARY KEY, webhooks INTEGER NOT NULL, is_pending INTEGER NOT NULL DEFAULT 0
  );
`
const NOTICES_AT_A_TIME = 50
/**
 * A Worker may make about a thousand requests per invocation; the rest waits for the next event or the cron trigger.
 */
const MAX_NOTICES_PER_RUN = 500

export type WebhookNotices = ReturnType<typeof createWebhookNotices>

/**
 * Notifies the objects that deliver webhooks of new events of their agents. A notice carries no event: the object reads
 * the log itself, so a slow receiver never slows the log. A failed notice is stored and resent.
 */
export function createWebhookNotices(sql: SqlStorage, notify: (agentId: number) => Promise<void>) {
  sql.exec(SCHEMA)
  const rows = sql
    .exec<{ agent: number; webhooks: number; is_pending: number }>('SELECT * FROM webhook_agent')
    .toArray()
  const webhooksOf = new Map(rows.map(({ agent, webhooks }) => [agent, webhooks]))
  /** Agents with a pending notice, and how often they were marked since. */
  const pending = new Map(rows.filter(row => row.is_pending).map(({ agent }) => [agent, 1]))

  function mark(agentId: number) {
    const marks = pending.get(agentId)
    if (marks === undefined) sql.exec('UPDATE webhook_agent SET is_pending = 1 WHERE agent = ?', agentId)
    pending.set(agentId, (marks ?? 0) + 1)
  }

  async function send(agentId: number) {
    const marks = pending.get(agentId)
    try {
      await notify(agentId)
    } catch (error) {
      return logFailure('webhook notice failure', error)
    }
    if (pending.get(agentId) !== marks) return send(agentId) // an event was logged after the notice
    pending.delete(agentId)
    sql.exec('UPDATE webhook_agent SET is_pending = 0 WHERE agent = ?', agentId)
  }

  const sendPending = singleFlightAgain(async () => {
    const agentIds = [...pending.keys()].slice(0, MAX_NOTICES_PER_RUN)
    for (let from = 0; from < agentIds.length; from += NOTICES_AT_A_TIME)
      await Promise.all(agentIds.slice(from, from + NOTICES_AT_A_TIME).map(send))
  })

  return {
    /**
     * Sets how many webhooks an agent has. Returns false, and changes nothing, if all agents together would then have more
     * than `max`.
     */
    setCount(agentId: number, count: number, max: number): boolean {
      const before = webhooksOf.get(agentId) ?? 0
      const total = [...webhooksOf.values()].reduce((sum, webhooks) => sum + webhooks, 0)
      if (count > before && total - before + count > max) return false
      if (count > 0) {
        webhooksOf.set(agentId, count)
        sql.exec(
          `INSERT INTO webhook_agent (agent, webhooks) VALUES (?1, ?2)
          ON CONFLICT (agent) DO UPDATE SET webhooks = ?2`,
          agentId,
          count,
        )
      } else {
        webhooksOf.delete(agentId)
        pending.delete(agentId)
        sql.exec('DELETE FROM webhook_agent WHERE agent = ?', agentId)
      }
      return true
    },

    hasWebhooks: () => webhooksOf.size > 0,

    /** Stores notices for agents with webhooks that select the events. Call it in the turn that logs them. */
    mark(events: readonly LoggedEvent[]) {
      if (webhooksOf.size === 0) return
      for (const { type, agentId } of events)
        if (type === 'reorg') for (const listed of webhooksOf.keys()) mark(listed)
        else if (agentId !== undefined && webhooksOf.has(agentId)) mark(agentId)
    },

    /** Sends the pending notices. */
    send: sendPending,
  }
}

/** An event as a filter shows it, and the cursor after it. */
export type SelectedEvent = Pick<LoggedEvent, 'id' | 'type' | 'data' | 'loggedAt'> & { cursor: LogCursor }

/** The result of a read after a cursor. */
export type LogPage =
  /** The next events in order. `cursor` is the position after them; `isComplete` is false if more follow. */
  | { kind: 'events'; events: SelectedEvent[]; cursor: LogCursor; isComplete: boolean }
  /**
   * The log no longer has the cursor's row: events were deleted, or the log was replaced. Reading continues at
   * `cursor`.
   */
  | { kind: 'gap'; cursor: LogCursor; loggedAt: number }

/** Reads a filter's events after a cursor, like a stream that resumes there. */
export function readLog(eventLog: EventLog, filter: EventFilter, cursor: LogCursor, limit: number): LogPage {
  const oldest = eventLog.oldest()
  if (oldest === undefined) return { kind: 'events', events: [], cursor, isComplete: true }
  const isFromStart = cursor.seq === 0 && oldest.seq === 1
  if (!isFromStart && eventLog.idAt(cursor.seq) !== cursor.id)
    return { kind: 'gap', cursor: { seq: oldest.seq, id: oldest.id }, loggedAt: oldest.loggedAt }
  const { events, through } = eventLog.page(filter, cursor.seq, limit)
  return {
    kind: 'events',
    events: events.map(event => ({
      id: event.id,
      type: event.type,
      data: dataFor(event, filter),
      loggedAt: event.loggedAt,
      cursor: { seq: event.seq, id: event.id },
    })),
    cursor: { seq: through, id: eventLog.idAt(through) ?? cursor.id },
    isComplete: events.length < limit,
  }
}
