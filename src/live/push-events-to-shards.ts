import { singleFlightAgain, sleep, withDeadline } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import type { LoggedEvent } from './event.ts'

const SCHEMA = `
  -- The shards that have streams.
  CREATE TABLE IF NOT EXISTS listening_shard (name TEXT PRIMARY KEY) WITHOUT ROWID;
`
const PUSH_TIMEOUT_MS = 10_000
/** The most events per push. A shard that lacks more reads them from the log. */
const MAX_PENDING = 1_000

/**
 * The pause after a push, in which further events gather, so that each stream gets them in one write. It follows from
 * the streams of all shards, because shards may share a thread with the lanes: streams of strangers must not delay
 * trades.
 */
const PAUSE_MS_PER_STREAM = 1
const MAX_PAUSE_MS = 250

/** Consecutive events of the log. `after` is the row before the first of them. */
export type LogBatch = { after: number; events: LoggedEvent[] }

/** Sends a batch to a shard. Returns how many streams it has open or is opening. */
type Push = (shard: string, batch: LogBatch) => Promise<number>

type Listener = {
  /** How often the shard registered. A shard that registers during a push stays registered. */
  registrations: number
  pending: LoggedEvent[]
  /** How many streams the shard had at the last push. */
  streams: number
  /** Sends the pending events, and pauses. */
  send(): Promise<void>
}

export type ShardFeed = ReturnType<typeof createShardFeed>

/**
 * Sends new events of the log to the shards that have streams: one call at a time to each, with everything logged since
 * the last call, and a pause after it. A failed call is not repeated: the shard notices the gap and reads the log.
 */
export function createShardFeed(sql: SqlStorage, push: Push) {
  sql.exec(SCHEMA)
  const listeners = new Map<string, Listener>()
  for (const { name } of sql.exec<{ name: string }>('SELECT name FROM listening_shard'))
    listeners.set(name, newListener(name))

  function newListener(shard: string): Listener {
    const listener: Listener = {
      registrations: 0,
      pending: [],
      streams: 0,
      send: singleFlightAgain(() => sendPending(shard, listener)),
    }
    return listener
  }

  async function sendPending(shard: string, listener: Listener): Promise<void> {
    const { pending: events, registrations } = listener
    listener.pending = []
    if (events.length === 0 || listeners.get(shard) !== listener) return
    const streams = await pushInTime(shard, { after: (events[0]?.seq ?? 1) - 1, events })
    if (streams === 0 && listener.registrations === registrations) {
      listeners.delete(shard)
      sql.exec('DELETE FROM listening_shard WHERE name = ?', shard)
      return
    }
    listener.streams = streams ?? 0
    const all = [...listeners.values()].reduce((sum, { streams }) => sum + streams, 0)
    await sleep(Math.min(MAX_PAUSE_MS, all * PAUSE_MS_PER_STREAM))
  }

  /** Returns undefined if the push failed. */
  function pushInTime(shard: string, batch: LogBatch): Promise<number | undefined> {
    const timeout = () => {
      throw new Error('The shard did not respond in time.')
    }
    return withDeadline(push(shard, batch), Date.now() + PUSH_TIMEOUT_MS, timeout).catch(error => {
      logFailure('event streams failure', error)
      return undefined
    })
  }

  return {
    /** Feeds a shard from now on, until it has no streams. */
    register(shard: string) {
      const listener = listeners.get(shard)
      if (listener) listener.registrations++
      else {
        listeners.set(shard, newListener(shard))
        sql.exec('INSERT OR IGNORE INTO listening_shard VALUES (?)', shard)
      }
    },

    /** The names of the shards that may have streams. */
    shards: () => [...listeners.keys()],

    /** Sends new events of the log. Resolves once every shard has them or failed, and its pause is over. */
    async publish(events: readonly LoggedEvent[]): Promise<void> {
      if (events.length === 0) return
      const sends = [...listeners.values()].map(listener => {
        listener.pending = listener.pending.length > MAX_PENDING ? [...events] : [...listener.pending, ...events]
        return listener.send()
      })
      await Promise.all(sends)
    },
  }
}
