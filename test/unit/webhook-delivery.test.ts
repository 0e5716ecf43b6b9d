import { describe, expect, it, vi } from 'vitest'
import type { StreamEvent } from '../../src/live/event.ts'
import type { Retention } from '../../src/live/event-retention.ts'
import { type EventLog, openEventLog } from '../../src/live/store.ts'
import { createWebhookNotices, readLog } from '../../src/live/webhook-notices.ts'
import { type AttemptOutcome, MAX_RETRY_DELAY_MS, MAX_RETRY_MS } from '../../src/webhooks/attempt.ts'
import {
  createDelivery,
  MAX_ATTEMPTS_PER_MINUTE,
  takesPlace,
  type WebhookMessage,
} from '../../src/webhooks/deliver-due-events.ts'
import { openWebhookStore, type StoredWebhook } from '../../src/webhooks/store.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

// Deliveries from a real event log, over SQLite in memory. The receiver and the clock are the
// test's: an hour passes by setting the clock.

const AGENT = 7
const START = Date.parse('2026-01-05T12:00:00Z')
const HOUR = 3_600_000
const delivered: AttemptOutcome = { kind: 'delivered', status: 200 }
const failed = (status: number, retryAfterMs = 0): AttemptOutcome => ({
  kind: 'failed',
  status,
  problem: `the response has status ${status}`,
  retryAfterMs,
})

/** A log, the webhooks of one agent, and a receiver that records what it gets. */
function sceneOf(log: EventLog, sql: SqlStorage) {
  const store = openWebhookStore(sql)
  const received: string[] = []
  const clock = { now: START, random: 1 }
  const places = { changes: 0 }
  const receiver = { respond: (_: WebhookMessage): AttemptOutcome | Promise<AttemptOutcome> => delivered }
  const open = () =>
    createDelivery({
      agentId: AGENT,
      store,
      readLog: async ({ cursor, eventTypes }) => readLog(log, { agentId: AGENT }, eventTypes, cursor, 10),
      post: async (_, message) => {
        const outcome = await receiver.respond(message)
        if (outcome.kind === 'delivered') received.push(message.id)
        return outcome
      },
      now: () => clock.now,
      random: () => clock.random,
      onPlacesChanged: () => void places.changes++,
    })
  let delivery = open()
  let webhooks = 0
  return {
    store,
    received,
    clock,
    places,
    receiver,
    add(fields: Partial<StoredWebhook> = {}): string {
      const id = `webhook ${++webhooks}`
      const { seq, id: cursorId } = log.newest()
      store.put({
        id,
        url: 'https://agents.example/events',
        eventTypes: [],
        createdBy: 'owner',
        createdAt: START,
        state: 'active',
        cursor: { seq, id: cursorId },
        secret: 'whsec_',
        ...fields,
      })
      return id
    },
    /** The log has new events. */
    notify() {
      delivery.wakeAll()
      return delivery.deliverDue()
    },
    deliver: () => delivery.deliverDue(),
    /** Sets the clock to the next attempt and makes it. Returns how long that was, or undefined if nothing is due. */
    async nextAttempt(): Promise<number | undefined> {
      const dueAt = delivery.nextDueAt()
      if (dueAt === undefined) return undefined
      const waited = dueAt - clock.now
      clock.now = dueAt
      await delivery.deliverDue()
      return waited
    },
    /** The object is evicted: only what is stored survives. */
    evict() {
      delivery = open()
    },
  }
}

async function withScene(
  test: (scene: ReturnType<typeof sceneOf>, log: EventLog, sql: SqlStorage) => Promise<void>,
  retention?: Retention,
): Promise<void> {
  const sql = createSqlStorage()
  const log = openEventLog(sql, retention)
  log.start(100, '0x00', 0)
  await test(sceneOf(log, sql), log, sql)
}

const event = (block: number, logIndex: number, changes: Partial<StreamEvent> = {}) => ({
  type: 'trade' as const,
  agentId: AGENT,
  vault: undefined,
  data: { n: `${block}-${logIndex}` },
  block,
  logIndex,
  ...changes,
})
/** Logs trades at the given blocks. */
const trade = (log: EventLog, ...blocks: number[]) =>
  log.appendFromChain(
    blocks.map(block => event(block, 0)),
    { block: blocks.at(-1) ?? 0, hash: '0x00' },
  )

describe('a webhook', () => {
  it('a webhook gets the events of its agent and its types, and every reorg, in the order of the log', () =>
    withScene(async ({ add, notify, received, store }, log) => {
      const all = add()
      log.appendFromChain([event(101, 0), event(101, 1, { agentId: 8 }), event(102, 0, { type: 'exit' })], {
        block: 103,
        hash: '0x00',
      })
      log.withdraw({ id: 1, ancestor: 101, lost: 103 })
      await notify()
      expect(received).toEqual(['101-0', '102-0', '103-1000000'])
      expect(store.find(all)).toMatchObject({ cursor: log.newest() })
      expect(store.find(all)?.nextAttemptAt).toBeUndefined()

      received.length = 0
      store.delete(all)
      add({ eventTypes: ['exit'] })
      log.appendFromChain([event(104, 0), event(104, 1, { type: 'exit' })], { block: 105, hash: '0x00' })
      await notify()
      expect(received).toEqual(['104-1'])
    }))

  it('a webhook loses nothing if its receiver is down for an hour', () =>
    withScene(async ({ add, notify, nextAttempt, received, receiver, clock, store }, log) => {
      const id = add()
      receiver.respond = () => (clock.now < START + HOUR ? failed(503) : delivered)
      const ids: string[] = []
      for (let block = 101; block < 161; block++) {
        ids.push(...trade(log, block).map(({ id }) => id))
        await notify()
        if (block % 10 === 0) await nextAttempt()
      }
      expect(received).toEqual([])
      expect(store.find(id)?.failure).toMatchObject({ messageId: '101-0', since: START, status: 503 })
      while ((await nextAttempt()) !== undefined);
      expect(received).toEqual(ids)
      expect(store.find(id)).toMatchObject({ state: 'active', lastDeliveredAt: clock.now })
      expect(store.find(id)?.failure).toBeUndefined()
      expect(clock.now - START).toBeLessThan(HOUR + MAX_RETRY_DELAY_MS)
    }))

  it('a webhook is retried with exponential backoff for 48 hours, then disabled with the reason, and goes on once enabled', () =>
    withScene(async ({ add, notify, nextAttempt, received, receiver, clock, store, deliver }, log) => {
      const id = add()
      receiver.respond = () => failed(500)
      trade(log, 101, 102)
      await notify()
      const waits: number[] = []
      for (let waited = await nextAttempt(); waited !== undefined; waited = await nextAttempt()) waits.push(waited)
      expect(waits.slice(0, 5)).toEqual([5_000, 10_000, 20_000, 40_000, 80_000])
      expect(Math.max(...waits)).toBe(HOUR)
      expect(clock.now - START).toBe(MAX_RETRY_MS)
      expect(store.find(id)).toMatchObject({
        state: 'disabled',
        disabledReason: 'Event 101-0 could not be delivered for 48 hours: the response has status 500.',
        failure: { messageId: '101-0', attempts: waits.length + 1 },
      })
      trade(log, 103)
      await notify()
      receiver.respond = () => delivered
      store.update(id, { state: 'active', failure: undefined, nextAttemptAt: clock.now })
      await deliver()
      expect(received).toEqual(['101-0', '102-0', '103-0'])
    }))

  it('a webhook waits as long as Retry-After says, up to an hour', () =>
    withScene(async ({ add, notify, nextAttempt, receiver, clock }, log) => {
      add()
      clock.random = 0
      receiver.respond = () => failed(429, 90_000)
      trade(log, 101)
      await notify()
      expect(await nextAttempt()).toBe(90_000)
      receiver.respond = () => failed(429, 30 * HOUR)
      expect(await nextAttempt()).toBe(90_000)
      expect(await nextAttempt()).toBe(HOUR)
      receiver.respond = () => failed(500)
      await nextAttempt()
      expect(await nextAttempt()).toBe(1_000)
    }))

  it('a webhook is disabled by status 410, and no event follows', () =>
    withScene(async ({ add, notify, nextAttempt, receiver, received, store }, log) => {
      const id = add()
      receiver.respond = () => ({ kind: 'gone' })
      trade(log, 101, 102)
      await notify()
      receiver.respond = () => delivered
      await notify()
      expect(await nextAttempt()).toBeUndefined()
      expect(received).toEqual([])
      expect(store.find(id)).toMatchObject({ state: 'disabled', disabledReason: expect.stringContaining('410') })
    }))

  it('a webhook repeats only the attempt in flight if its object is evicted in the middle', () =>
    withScene(async ({ add, notify, deliver, receiver, received, evict }, log) => {
      add()
      const attempts: string[] = []
      let reached: () => void
      const isInFlight = new Promise<void>(resolve => {
        reached = resolve
      })
      receiver.respond = ({ id }) => {
        attempts.push(id)
        if (id !== '103-0') return delivered
        reached()
        return new Promise(() => {}) // the object dies before the response
      }
      trade(log, 101, 102, 103, 104)
      void notify()
      await isInFlight
      evict()
      receiver.respond = ({ id }) => {
        attempts.push(id)
        return delivered
      }
      await deliver()
      expect(received).toEqual(['101-0', '102-0', '103-0', '104-0'])
      expect(attempts).toEqual(['101-0', '102-0', '103-0', '103-0', '104-0'])
    }))

  it('a webhook gets a gap notice if the log was replaced, and then what the log has', () =>
    withScene(async ({ add, notify, receiver, received, store }, log, sql) => {
      add()
      const bodies: string[] = []
      receiver.respond = ({ body }) => {
        bodies.push(body)
        return delivered
      }
      trade(log, 101, 102, 103, 104)
      sql.exec('DELETE FROM entry WHERE seq <= ?', log.newest().seq - 2)
      await notify()
      expect(received).toEqual(['gap-103-0', '104-0'])
      expect(JSON.parse(bodies[0] ?? '')).toEqual({
        type: 'gap',
        timestamp: expect.stringMatching(/^20\d\d-.*Z$/),
        data: { agentId: '7', after: '100-1000000', resumedAfter: '103-0' },
      })
      expect(store.list()[0]?.cursor.id).toBe('104-0')
    }))

  it('a webhook that was down gets its trades, whatever strangers and its own intents did meanwhile', () =>
    withScene(
      async ({ add, notify, received }, log) => {
        add({ eventTypes: ['trade'] })
        vi.useFakeTimers()
        const days = (from: number, to: number) => {
          for (let block = from; block < to; block++) {
            vi.advanceTimersByTime(HOUR)
            const intents = Array.from({ length: 10 }, (_, index) =>
              event(block, 1 + index, index % 2 ? { agentId: 8 } : { type: 'intent' }),
            )
            log.appendFromChain(intents, { block, hash: '0x00' })
          }
        }
        trade(log, 101)
        days(102, 150)
        trade(log, 150)
        days(151, 250)
        vi.useRealTimers()
        expect(log.gapAfter({ agentId: AGENT }, 1)).toBeDefined()
        await notify()
        expect(received).toEqual(['101-0', '150-0'])
      },
      { minAgeMs: 48 * HOUR, perAgentAndType: 5, total: 1_000, prices: 10, interval: 10 },
    ))

  it('a webhook whose own events were deleted gets a gap notice, and then what the log has', () =>
    withScene(
      async ({ add, notify, received, store }, log) => {
        add()
        vi.useFakeTimers()
        for (let block = 101; block <= 120; block++) {
          vi.advanceTimersByTime(2_000)
          trade(log, block)
        }
        vi.useRealTimers()
        await notify()
        expect([received[0], received.at(-1)]).toEqual([expect.stringMatching(/^gap-1\d\d-0$/), '120-0'])
        expect([received.length < 12, store.list()[0]?.cursor.id]).toEqual([true, '120-0'])
        trade(log, 121)
        await notify()
        expect(received.at(-1)).toBe('121-0')
      },
      { minAgeMs: 1_000, perAgentAndType: 3, total: 1_000, prices: 10, interval: 10 },
    ))

  it('a webhook gets at most 120 attempts a minute; the rest follows in the next one', () =>
    withScene(async ({ add, notify, nextAttempt, received, clock }, log) => {
      add()
      trade(log, ...Array.from({ length: MAX_ATTEMPTS_PER_MINUTE + 5 }, (_, index) => 101 + index))
      await notify()
      expect(received).toHaveLength(MAX_ATTEMPTS_PER_MINUTE)
      expect(await nextAttempt()).toBe(60_000)
      expect([received.length, clock.now - START]).toEqual([MAX_ATTEMPTS_PER_MINUTE + 5, 60_000])
    }))

  it('a webhook waits for its own receiver only', () =>
    withScene(async ({ add, notify, receiver, received, store }, log) => {
      const [slow, quick] = [add(), add()]
      let respond: (outcome: AttemptOutcome) => void = () => {}
      let posts = 0
      receiver.respond = () =>
        ++posts === 1
          ? new Promise(resolve => {
              respond = resolve
            })
          : delivered
      trade(log, 101, 102)
      const done = notify()
      await expect.poll(() => store.find(quick)?.cursor.id, { timeout: 30_000 }).toBe('102-0')
      expect([received, store.find(slow)?.cursor.id]).toEqual([['101-0', '102-0'], '100-1000000'])
      // Also for events that follow.
      trade(log, 103)
      void notify()
      await expect.poll(() => store.find(quick)?.cursor.id, { timeout: 30_000 }).toBe('103-0')
      expect(store.find(slow)?.cursor.id).toBe('100-1000000')
      respond(delivered)
      await done
      expect(store.find(slow)?.cursor.id).toBe('103-0')
    }))

  it('a webhook takes no place of the deployment once it has failed for an hour, and again once it delivers', () =>
    withScene(async ({ add, notify, nextAttempt, receiver, places, store }, log) => {
      const id = add()
      const hasPlace = () => takesPlace(store.find(id) as StoredWebhook)
      receiver.respond = () => failed(503)
      trade(log, 101)
      await notify()
      while (hasPlace()) await nextAttempt()
      const { since = 0, lastAttemptAt = 0 } = store.find(id)?.failure ?? {}
      expect([lastAttemptAt - since >= HOUR, lastAttemptAt - since < 2 * HOUR]).toEqual([true, true])
      expect(places.changes).toBe(1)
      receiver.respond = () => delivered
      await nextAttempt()
      expect([hasPlace(), places.changes]).toEqual([true, 2])
      receiver.respond = () => ({ kind: 'gone' })
      trade(log, 102)
      await notify()
      expect([hasPlace(), places.changes]).toEqual([false, 3])
    }))
})

describe('a notice to the webhooks of an agent', () => {
  it('a notice to the webhooks of an agent is stored until it arrived, and sent again after a failure or a restart', () =>
    withScene(async (_, log, sql) => {
      const notified: number[] = []
      let isReachable = false
      const notify = async (agentId: number) => {
        if (!isReachable) throw new Error('the object is being deployed')
        notified.push(agentId)
      }
      const notices = createWebhookNotices(sql, notify)
      expect(notices.setCounts(AGENT, { active: 2, places: 2 }, 3)).toBe(true)
      expect(notices.setCounts(8, { active: 2, places: 2 }, 3)).toBe(false)
      expect(notices.setCounts(8, { active: 2, places: 1 }, 3)).toBe(true)
      notices.mark(trade(log, 101))
      await notices.send()
      expect(notified).toEqual([])
      isReachable = true
      const restarted = createWebhookNotices(sql, notify)
      await restarted.send()
      await restarted.send()
      expect(notified).toEqual([AGENT])
      restarted.mark([log.withdraw({ id: 1, ancestor: 100, lost: 101 })])
      await restarted.send()
      expect(notified).toEqual([AGENT, AGENT, 8])
      expect(restarted.usage(1)).toEqual({ places: 3, agents: [{ agentId: AGENT, active: 2, places: 2 }] })
      expect(restarted.setCounts(8, { active: 0, places: 0 }, 3)).toBe(true)
      restarted.mark([log.withdraw({ id: 2, ancestor: 100, lost: 101 })])
      await restarted.send()
      expect(notified).toEqual([AGENT, AGENT, 8, AGENT])
    }))
})
