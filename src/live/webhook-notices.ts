import { batchesOf, singleFlightAgain } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import { dataFor, type EventFilter, type LoggedEvent } from './event.ts'
import type { EventLog, LogCursor } from './store.ts'

export const webhooksOf = (namespace: Env['WEBHOOKS'], { id }: { id: number }, agentId: bigint | number) =>
  namespace.getByName(`${id}:${agentId}`)

const SCHEMA = `
  -- Agents with active webhooks: WebhookCounts, and whether their object still has to hear of an event.
  CREATE TABLE IF NOT EXISTS webhook_agent (
    agent INTEGER PRIMARY KEY, active INTEGER NOT NULL, places INTEGER NOT NULL, is_pending INTEGER NOT NULL DEFAULT 0
  );
`
const NOTICES_AT_A_TIME = 50
/**
 * A Worker may make about a thousand requests per invocation; the rest waits for the next event or the cron trigger.
 */
const MAX_NOTICES_PER_RUN = 500
const MINUTES_PER_HOUR = 60

/**
 * How many active webhooks an agent has, and how many of the deployment's places they take: those that have failed for
 * long take none.
 */
export type WebhookCounts = { active: number; places: number }

export type WebhookNotices = ReturnType<typeof createWebhookNotices>

/**
 * Notifies the objects that deliver webhooks of new events of their agents. A notice carries no event: the object reads
 * the log itself, so a slow receiver never slows the log. A failed notice is stored and resent.
 */
export function createWebhookNotices(sql: SqlStorage, notify: (agentId: number) => Promise<void>) {
  sql.exec(SCHEMA)
  const rows = sql.exec<{ agent: number; is_pending: number } & WebhookCounts>('SELECT * FROM webhook_agent').toArray()
  const countsOf = new Map(rows.map(({ agent, active, places }) => [agent, { active, places }]))
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
    for (const batch of batchesOf(agentIds, NOTICES_AT_A_TIME)) await Promise.all(batch.map(send))
  })

  return {
    /**
     * Sets how many webhooks an agent has. Returns false, and changes nothing, if all agents together would then take
     * more than `max` places.
     */
    setCounts(agentId: number, { active, places }: WebhookCounts, max: number): boolean {
      const before = countsOf.get(agentId)?.places ?? 0
      if (places > before && placesTaken(countsOf) - before + places > max) return false
      if (active > 0) {
        countsOf.set(agentId, { active, places })
        sql.exec(
          `INSERT INTO webhook_agent (agent, active, places) VALUES (?1, ?2, ?3)
          ON CONFLICT (agent) DO UPDATE SET active = ?2, places = ?3`,
          agentId,
          active,
          places,
        )
      } else {
        countsOf.delete(agentId)
        pending.delete(agentId)
        sql.exec('DELETE FROM webhook_agent WHERE agent = ?', agentId)
      }
      return true
    },

    /** Returns the places taken, and the agents that take most of them. */
    usage(limit: number): WebhookUsage {
      const agents = [...countsOf].map(([agentId, counts]) => ({ agentId, ...counts }))
      return {
        places: placesTaken(countsOf),
        agents: agents
          .sort((a, b) => b.places - a.places || b.active - a.active || a.agentId - b.agentId)
          .slice(0, limit),
      }
    },

    /** Returns how many webhooks are active, and how many of them have failed for so long that they take no place. */
    totals() {
      const active = [...countsOf.values()].reduce((sum, counts) => sum + counts.active, 0)
      return { active, failing: active - placesTaken(countsOf) }
    },

    hasWebhooks: () => countsOf.size > 0,

    /** Stores notices for agents with webhooks that select the events. Call it in the turn that logs them. */
    mark(events: readonly LoggedEvent[]) {
      if (countsOf.size === 0) return
      for (const { type, agentId } of events)
        if (type === 'reorg') for (const listed of countsOf.keys()) mark(listed)
        else if (agentId !== undefined && countsOf.has(agentId)) mark(agentId)
    },

    /**
     * Stores notices for the agents whose turn comes once an hour in a minute, because an object may have lost its
     * alarm.
     */
    markHourly(minute: number) {
      for (const agentId of countsOf.keys()) if (agentId % MINUTES_PER_HOUR === minute % MINUTES_PER_HOUR) mark(agentId)
    },

    /** Sends the pending notices. */
    send: sendPending,
  }
}

/** The places that webhooks take, and agents with the counts of theirs. */
export type WebhookUsage = { places: number; agents: (WebhookCounts & { agentId: number })[] }

const placesTaken = (countsOf: ReadonlyMap<number, WebhookCounts>) =>
  [...countsOf.values()].reduce((sum, { places }) => sum + places, 0)

/** An event as a filter shows it, and the cursor after it. */
export type SelectedEvent = Pick<LoggedEvent, 'id' | 'type' | 'data' | 'loggedAt'> & { cursor: LogCursor }

/** The result of a read after a cursor. */
export type LogPage =
  /** The next events in order. `cursor` is the position after them; `isComplete` is false if more follow. */
  | { kind: 'events'; events: SelectedEvent[]; cursor: LogCursor; isComplete: boolean }
  /**
   * The log no longer has events after the cursor: they were deleted, or the log was replaced. Reading continues at
   * `cursor`.
   */
  | { kind: 'gap'; cursor: LogCursor; loggedAt: number }

/**
 * Reads a filter's events after a cursor, like a stream that resumes there. A gap matters only among the given types.
 */
export function readLog(
  eventLog: EventLog,
  filter: EventFilter,
  types: readonly string[],
  cursor: LogCursor,
  limit: number,
): LogPage {
  const oldest = eventLog.oldest()
  if (oldest === undefined) return { kind: 'events', events: [], cursor, isComplete: true }
  const after = cursor.seq === 0 && oldest.seq === 1 ? 0 : eventLog.rowOf(cursor)
  const gap = eventLog.gapAfter(filter, after ?? 0, types) ?? (after === undefined ? oldest : undefined)
  if (after === undefined || gap) {
    const { seq, id, loggedAt } = gap ?? oldest
    return { kind: 'gap', cursor: { seq, id }, loggedAt }
  }
  const { events, through } = eventLog.page(filter, after, limit)
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
