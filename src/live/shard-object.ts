import { DurableObject } from 'cloudflare:workers'
import { singleFlightAgain } from '../concurrency.ts'
import { logFailure } from '../log.ts'
import { chainOfShard, eventLogOf, type StreamOpening, type StreamRefusal } from './client.ts'
import type { LoggedEvent } from './event.ts'
import { createLogWindow, createMissedEventsReader } from './newest-events.ts'
import type { LogBatch } from './push-events-to-shards.ts'
import type { LogCursor } from './store.ts'
import { createSubscribers, HEARTBEAT_TICK_MS } from './subscribers.ts'

/** How often it asks the log for its newest row, in case a push was lost. */
const BEAT_MS = 15_000
const EVENTS_PER_READ = 200

/**
 * Holds some of the open streams of a deployment. The object with the event log pushes each event once; the shard reads
 * missed events from the log, so all shards send the same events with the same ids in the same order.
 */
export class EventStreamShardObject extends DurableObject<Env> {
  readonly #window = createLogWindow()
  readonly #subscribers = createSubscribers({
    window: this.#window,
    readMissed: createMissedEventsReader(this.#window, async (filter, after, limit) => {
      const { events, through, hasGap } = await this.#log().readEvents(filter, after, limit)
      if (hasGap) throw new Error('The log no longer has the next events of the stream.')
      return { events, through: through.seq }
    }),
  })
  /** The newest row that the log is known to have. */
  #target = 0
  #timer: ReturnType<typeof setInterval> | undefined
  /** When the log was last asked for its newest row; epoch milliseconds. */
  #askedAt = 0
  readonly #catchUp = singleFlightAgain(() => this.#readMissed())

  /** Opens a stream. Returns it as the body, or status 400 with `{ code: StreamRefusal }`. */
  override async fetch(request: Request): Promise<Response> {
    const { filter, lastEventId, heartbeatSeconds, client, maxStreams, isLast } =
      (await request.json()) as StreamOpening
    const seat = this.#subscribers.reserve(client, maxStreams, isLast)
    if (typeof seat === 'string') return refuseStream(seat)
    try {
      const known = this.#window.newest()
      const start = await this.#log().follow(this.#name(), filter, lastEventId)
      if ('code' in start) {
        seat.leave()
        return refuseStream(start.code)
      }
      const { after, newest } = start
      this.#askedAt = Date.now()
      this.#startOverIfRestored(known, newest)
      if (this.#window.newest() === undefined) this.#window.startAt(newest)
      const body = this.#subscribers.open({ filter, seat, heartbeatSeconds }, after, lastEventId ?? newest.id)
      this.#timer ??= setInterval(() => this.ctx.waitUntil(this.#tick()), HEARTBEAT_TICK_MS)
      this.#reach(newest)
      return new Response(body)
    } catch (error) {
      seat.leave()
      logFailure('event streams failure', error)
      return refuseStream('HISTORY_UNAVAILABLE')
    }
  }

  /**
   * Sends new events of the log to all streams. Returns how many are open or opening; without any, the log may forget
   * the shard.
   */
  async push({ after, events }: LogBatch): Promise<number> {
    const last = events.at(-1)
    if (this.#subscribers.size() === 0) this.#window.stop()
    else if (last) {
      const newest = this.#window.newest()
      if (newest === undefined) this.#window.startAt({ seq: after, id: last.id })
      if (newest === undefined || after <= newest.seq) await this.#append(events, last)
      else this.#reach(last)
    }
    return this.#subscribers.size()
  }

  /** Returns how many streams are open or opening. */
  size(): number {
    return this.#subscribers.size()
  }

  #append(events: readonly LoggedEvent[], { seq, id }: LogCursor): Promise<void> {
    return this.#subscribers.publish(this.#window.append(events, { seq, id }))
  }

  /** Reads the log up to a row that it is known to have, if no push brought it. Failures are logged. */
  #reach({ seq }: LogCursor) {
    this.#target = Math.max(this.#target, seq)
    if (this.#isComplete()) return
    this.ctx.waitUntil(this.#catchUp().catch(error => logFailure('event streams failure', error)))
  }

  #isComplete(): boolean {
    return (this.#window.newest()?.seq ?? Number.POSITIVE_INFINITY) >= this.#target
  }

  async #readMissed() {
    while (!this.#isComplete()) {
      const from = this.#window.newest()?.seq ?? 0
      const { events, through } = await this.#log().readEvents(undefined, from, EVENTS_PER_READ)
      if (through.seq <= from) return // the log was deleted
      if (this.#window.newest()) await this.#append(events, through)
    }
  }

  async #tick() {
    if (this.#subscribers.size() === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      this.#window.stop()
      return
    }
    try {
      await this.#subscribers.sendHeartbeats(Date.now())
      if (Date.now() - this.#askedAt < BEAT_MS) return
      this.#askedAt = Date.now()
      const known = this.#window.newest()
      const newest = await this.#log().beat(this.#name())
      this.#startOverIfRestored(known, newest)
      this.#reach(newest)
    } catch (error) {
      logFailure('event streams failure', error)
    }
  }

  /**
   * Ends all streams if the log has fewer rows than before, which means that an older state was restored. Clients
   * resume.
   */
  #startOverIfRestored(known: LogCursor | undefined, { seq }: LogCursor) {
    if (known === undefined || seq >= known.seq) return
    this.#window.stop()
    this.#target = 0
    this.#subscribers.disconnectAll(new Error('The event log was restored to an older state.'))
  }

  #name(): string {
    return this.ctx.id.name ?? ''
  }

  #log() {
    return eventLogOf(this.env.EVENT_STREAMS, chainOfShard(this.#name()))
  }
}

const refuseStream = (code: StreamRefusal) => Response.json({ code }, { status: 400 })
