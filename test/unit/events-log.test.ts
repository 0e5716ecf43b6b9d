import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { dataFor, type EventFilter, type LoggedEvent, type StreamEvent } from '../../src/live/event.ts'
import type { Retention } from '../../src/live/event-retention.ts'
import { createLogWindow, createMissedEventsReader } from '../../src/live/newest-events.ts'
import { createShardFeed } from '../../src/live/push-events-to-shards.ts'
import { type EventLog, openEventLog } from '../../src/live/store.ts'
import { createSubscribers, MAX_STREAMS_PER_OBJECT } from '../../src/live/subscribers.ts'
import { FIRST_OFF_CHAIN_INDEX } from '../../src/resources/event-id.ts'
import { listen, type StreamListener } from '../support/event-stream.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

// The event log and its subscribers, over SQLite in memory.

const HASH = '0x00'
const VAULT = '0x00000000000000000000000000000000000000aa' as const

/** Runs a test on a log that starts at the end of block 100. `reopen` opens the same storage again. */
async function withLog(
  test: (log: EventLog, reopen: () => EventLog) => Promise<void> | void,
  retention?: Retention,
): Promise<void> {
  const sql = createSqlStorage()
  const log = openEventLog(sql, retention)
  log.start(100, HASH, 0)
  await test(log, () => openEventLog(sql, retention))
}
const trade = (block: number, logIndex: number, agentId = 7) => {
  const event: StreamEvent = { type: 'trade', agentId, vault: undefined, data: { n: `${block}-${logIndex}`, agentId } }
  return { ...event, block, logIndex }
}
const intent: StreamEvent = { type: 'intent', agentId: 7, vault: undefined, data: {} }
const idsAfter = (log: EventLog, id: string, filter: EventFilter = {}) => {
  const after = log.resolve(id, filter)
  return typeof after === 'number' ? log.page(filter, after, 100).events.map(event => event.id) : after
}
const FIRST = FIRST_OFF_CHAIN_INDEX

it('an id is block and log index; events without a log follow all logs of the newest block', () =>
  withLog(log => {
    const first = log.appendOffChain([intent])
    const logs = log.appendFromChain([trade(101, 0), trade(103, 4)], { block: 105, hash: HASH })
    const last = log.appendOffChain([intent, intent])
    expect([...first, ...logs, ...last].map(({ id }) => id)).toEqual([
      `100-${FIRST + 1}`,
      '101-0',
      '103-4',
      `105-${FIRST}`,
      `105-${FIRST + 1}`,
    ])
  }))

it('an id ends in the branch number if a reorg reuses its position, and only then', () =>
  withLog(log => {
    log.appendFromChain([trade(101, 0), trade(102, 1)], { block: 104, hash: HASH })
    const reorg = log.withdraw({ id: 1, ancestor: 101, lost: 104 })
    expect([reorg.id, JSON.parse(reorg.data).withdrawn]).toEqual([
      `104-${FIRST}`,
      [{ id: '102-1', agentId: 7, vault: null }],
    ])
    const again = log.appendFromChain([trade(102, 1), trade(105, 0)], { block: 106, hash: HASH })
    expect(again.map(({ id }) => id)).toEqual(['102-1.1', '105-0'])
    const second = log.withdraw({ id: 2, ancestor: 100, lost: 106 })
    expect(JSON.parse(second.data).withdrawn.map(({ id }: { id: string }) => id)).toEqual(['101-0', '102-1.1', '105-0'])
  }))

it('a client resumes exactly after its last event, whatever branch that was on', () =>
  withLog((log, reopen) => {
    log.appendFromChain([trade(101, 0), trade(102, 1)], { block: 104, hash: HASH })
    log.withdraw({ id: 1, ancestor: 101, lost: 104 })
    log.appendFromChain([trade(102, 1), trade(105, 0)], { block: 106, hash: HASH })
    for (const opened of [log, reopen()]) {
      expect(idsAfter(opened, '101-0')).toEqual(['102-1', `104-${FIRST}`, '102-1.1', '105-0'])
      expect(idsAfter(opened, '102-1')).toEqual([`104-${FIRST}`, '102-1.1', '105-0'])
      expect(idsAfter(opened, '102-1.1')).toEqual(['105-0'])
      expect(idsAfter(opened, '105-0')).toEqual([])
      // Positions without an event: above the highest lost block positions only grow, below it they are ambiguous.
      expect(idsAfter(opened, '104-999999')).toBe('unknown')
      expect(idsAfter(opened, '105-999999')).toEqual([])
      // A log that is opened is at its newest event, until it reads the index again.
      expect(idsAfter(opened, '106-3')).toEqual(opened === log ? [] : 'ahead')
      expect(idsAfter(opened, '107-0')).toBe('ahead')
      expect(idsAfter(opened, '12105-0')).toBe('ahead')
      // So far ahead that the index is not read for it.
      expect(idsAfter(opened, '12107-0')).toBe('unknown')
      expect(idsAfter(opened, '99-999999')).toBe('unknown')
      expect(idsAfter(opened, '105-0.1')).toBe('unknown')
    }
  }))

it('a client may resume from a position between two events, back to the start of the log', () =>
  withLog(log => {
    log.appendFromChain([trade(101, 5), trade(103, 2)], { block: 104, hash: HASH })
    expect(idsAfter(log, '100-999999')).toEqual(['101-5', '103-2'])
    expect(idsAfter(log, '100-3')).toBe('unknown')
    expect(idsAfter(log, '101-4')).toEqual(['101-5', '103-2'])
    expect(idsAfter(log, '102-999999')).toEqual(['103-2'])
  }))

it('a reorg lists the newest 10,000 withdrawn events, once, and a page only those of its filter', () =>
  withLog(async log => {
    const many = Array.from({ length: 10_001 }, (_, logIndex) => trade(101, logIndex, logIndex > 9_999 ? 7 : 8))
    log.appendFromChain([...many, { ...trade(102, 0, 9), vault: VAULT }], { block: 102, hash: HASH })
    const after = log.newest().seq
    const reorg = log.withdraw({ id: 1, ancestor: 100, lost: 102 })
    const { withdrawn, ...facts } = JSON.parse(reorg.data)
    expect(facts).toEqual({ fromBlock: '101', toBlock: '102', commonAncestor: '100', isComplete: false })
    expect(withdrawn.map(({ id }: { id: string }) => id)).toEqual([
      ...many.slice(2).map(({ logIndex }) => `101-${logIndex}`),
      '102-0',
    ])
    const parse = vi.spyOn(JSON, 'parse')
    const parsed = () => parse.mock.calls.filter(([text]) => text === reorg.data).length
    const ofFilter = (filter: EventFilter) => JSON.parse(log.page(filter, after, 1).events[0]?.data ?? '')
    expect(ofFilter({ agentId: 7 })).toEqual({ ...facts, withdrawn: [{ id: '101-10000', agentId: 7, vault: null }] })
    expect(ofFilter({ vault: VAULT }).withdrawn).toEqual([{ id: '102-0', agentId: 9, vault: VAULT }])
    expect(ofFilter({ agentId: 10 }).withdrawn).toEqual([])
    expect(parsed()).toBe(1)
    const { subscribers, window } = openStreams(log)
    window.startAt({ seq: after, id: '' })
    for (const filter of [{ agentId: 7 }, { agentId: 8 }, { vault: VAULT }, {}]) {
      const seat = subscribers.reserve(['a'], 10)
      if (typeof seat !== 'string') subscribers.open({ filter, seat, heartbeatSeconds: 15 }, after, '1-0')
    }
    parse.mockClear()
    await subscribers.publish(window.append([reorg], reorg))
    expect(parsed()).toBe(1)
    parse.mockRestore()
    const next = log.withdraw({ id: 2, ancestor: 100, lost: 102 })
    expect(JSON.parse(next.data)).toMatchObject({ withdrawn: [] })
  }))

it('a different chain withdraws every event, and the log starts again on it', () =>
  withLog(log => {
    log.appendFromChain([trade(101, 5)], { block: 104, hash: HASH })
    const reorg = log.withdraw({ id: 0, ancestor: -1, lost: 104 })
    expect(JSON.parse(reorg.data)).toMatchObject({ commonAncestor: null, withdrawn: [{ id: '101-5' }] })
    log.start(9, HASH, 0)
    expect(log.appendFromChain([trade(10, 0)], { block: 10, hash: HASH })[0]?.id).toBe('10-0.1')
    expect(idsAfter(log, '101-5')).toEqual([reorg.id, '10-0.1'])
  }))

it('an alert stays active, across restarts, until it is cleared', () =>
  withLog((log, reopen) => {
    log.raiseAlert('stale')
    log.raiseAlert('breach')
    log.clearAlert('stale')
    expect([...reopen().activeAlerts]).toEqual(['breach'])
  }))

const inSeconds = (seconds: number) => Date.now() + seconds * 1_000

/** Opens streams of a log as a shard does. `publish` appends events to the log and pushes them. */
function openStreams(log: EventLog) {
  const window = createLogWindow()
  window.startAt(log.newest())
  const readLog = vi.fn(async (...query: Parameters<EventLog['page']>) => log.page(...query))
  const subscribers = createSubscribers({ window, readMissed: createMissedEventsReader(window, readLog) })
  return {
    subscribers,
    window,
    readLog,
    open(filter: EventFilter, after = log.newest(), client = 'a', heartbeatSeconds = 15) {
      const seat = subscribers.reserve([client], 50)
      if (typeof seat === 'string') throw new Error(seat)
      return subscribers.open({ filter, seat, heartbeatSeconds }, after.seq, after.id)
    },
    publish: (events: readonly LoggedEvent[]) => subscribers.publish(window.append(events, log.newest())),
  }
}

it('where all streams of an object are open, the network that holds most gives its oldest back to a newcomer, at once', () =>
  withLog(async log => {
    const { subscribers } = openStreams(log)
    const open = (address: string, isLast = true) => {
      const seat = subscribers.reserve([address], 3_000, isLast)
      if (typeof seat === 'string') return seat
      return subscribers
        .open({ filter: { agentId: 7 }, heartbeatSeconds: 15, seat }, log.newest().seq, '100-0')
        .getReader()
    }
    const crowd = Array.from({ length: MAX_STREAMS_PER_OBJECT - 2 }, () => open('192.0.2.1'))
    const others = [open('192.0.2.2'), open('192.0.2.3')]
    expect(open('192.0.2.4', false)).toBe('TOO_MANY_STREAMS')
    expect(open('192.0.2.1')).toBe('TOO_MANY_STREAMS')
    const newcomer = open('192.0.2.4')
    expect(subscribers.size()).toBe(MAX_STREAMS_PER_OBJECT)
    const [oldest, next] = crowd
    for (const reader of [next, ...others, newcomer]) {
      if (reader === undefined || typeof reader === 'string') throw new Error(reader)
      expect((await reader.read()).done).toBe(false)
    }
    if (oldest === undefined || typeof oldest === 'string') throw new Error(oldest)
    await expect(oldest.read()).rejects.toThrow('gave this one back')
    if (typeof newcomer !== 'string') await newcomer.cancel()
    expect(subscribers.size()).toBe(MAX_STREAMS_PER_OBJECT - 1)
    expect(typeof open('192.0.2.5', false)).toBe('object')
  }))

it('the streams of one client read the log at a bounded pace together, and hold up no other client', () =>
  withLog(async log => {
    const events = Array.from({ length: 600 }, (_, index) => trade(101, index))
    const [first] = log.appendFromChain(events, { block: 101, hash: HASH })
    if (first === undefined) throw new Error('Nothing was logged.')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { open, readLog } = openStreams(log)
      const crowd = Array.from({ length: 10 }, () => listen(new Response(open({ agentId: 7 }, first, 'crowd'))))
      const other = listen(new Response(open({ agentId: 7 }, first, 'other')))
      await other.until(() => other.events.length === 25)
      // One read fills the window, and each client has read a page.
      expect(readLog).toHaveBeenCalledTimes(3)
      const streams = [...crowd, other]
      const all = Promise.all(streams.map(stream => stream.until(() => stream.events.length === 599)))
      await Promise.all([all, vi.advanceTimersByTimeAsync(10_000)])
    } finally {
      vi.useRealTimers()
    }
  }))

it('a slow client is served from the log, and gets every event once and in order', () =>
  withLog(async log => {
    const { open, publish, readLog } = openStreams(log)
    const slow = listen(new Response(open({ agentId: 7 })))
    await slow.open()
    const padding = 'x'.repeat(4_000)
    const expected: string[] = []
    for (let block = 101; block <= 600; block++) {
      const events = [trade(block, 0), trade(block, 1, 8)].map(event => ({
        ...event,
        data: { ...event.data, padding },
      }))
      const logged = log.appendFromChain(events, { block, hash: HASH })
      expected.push(logged[0]?.id ?? '')
      await publish(logged)
    }
    await slow.until(() => slow.events.length === expected.length)
    expect(slow.events.map(({ id }) => id)).toEqual(expected)
    expect(readLog.mock.calls.some(([filter]) => filter?.agentId === 7)).toBe(true)
    publish(log.appendFromChain([trade(601, 0)], { block: 601, hash: HASH }))
    expect((await slow.until(() => slow.events.find(({ id }) => id === '601-0'))).event).toBe('trade')
  }))

it('events that are pushed together reach each stream in one write, without those that it has', () =>
  withLog(async log => {
    const { open, publish } = openStreams(log)
    const start = log.newest()
    const first = log.appendFromChain([trade(101, 0), trade(101, 1, 8)], { block: 101, hash: HASH })
    const readers = [open({}, start), open({ agentId: 7 }, start), open({}, log.newest())].map(stream =>
      stream.getReader(),
    )
    const read = () => Promise.all(readers.map(async reader => new TextDecoder().decode((await reader.read()).value)))
    const idsOf = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)
    await read() // how each stream opens
    publish([...first, ...log.appendFromChain([trade(102, 0)], { block: 102, hash: HASH })])
    expect((await read()).map(idsOf)).toEqual([['101-0', '101-1', '102-0'], ['101-0', '102-0'], ['102-0']])
  }))

it('events and heartbeats that follow while an event is being sent reach every stream in order', () =>
  withLog(async log => {
    const { open, publish, subscribers } = openStreams(log)
    const start = log.newest()
    const streams = Array.from({ length: 20 }, () => listen(new Response(open({}))))
    const sent = [
      publish(log.appendFromChain([trade(101, 0)], { block: 101, hash: HASH })),
      subscribers.sendHeartbeats(inSeconds(15)),
    ]
    sent.push(publish(log.appendFromChain([trade(102, 0)], { block: 102, hash: HASH })))
    const late = [listen(new Response(open({}, start))), listen(new Response(open({})))]
    await Promise.all(sent)
    sent.push(publish(log.appendFromChain([trade(103, 0)], { block: 103, hash: HASH })))
    await Promise.all([...streams, ...late].map(stream => stream.until(() => stream.events.at(-1)?.id === '103-0')))
    const ids = [...streams, ...late].map(({ events }) => events.map(({ id }) => id).join())
    expect(ids).toEqual([...streams.map(() => '101-0,102-0,103-0'), '101-0,102-0,103-0', '103-0'])
  }))

it('a stream opens with its position, an event with data, so that every library keeps its id', () =>
  withLog(async log => {
    const { open } = openStreams(log)
    const { value } = await open({}).getReader().read()
    const id = `100-${FIRST}`
    expect(new TextDecoder().decode(value)).toBe(
      `retry: 1000\nid: ${id}\nevent: position\ndata: {"id":"${id}","blockNumber":"100"}\n\n`,
    )
  }))

it('a heartbeat is a comment, or the position if other streams have got events since, and moves no stream past an event', () =>
  withLog(async log => {
    const { open, publish, subscribers } = openStreams(log)
    const readers = Array.from({ length: 20 }, () => open({ agentId: 7 }).getReader())
    const read = () => Promise.all(readers.map(async reader => new TextDecoder().decode((await reader.read()).value)))
    await read() // how each stream opens
    const heartbeat = subscribers.sendHeartbeats(inSeconds(15))
    const published = publish(log.appendFromChain([trade(101, 0), trade(101, 1, 8)], { block: 101, hash: HASH }))
    for (const text of await read()) expect(text).toMatch(/^id: 101-0\nevent: trade/)
    const position = 'id: 101-1\nevent: position\ndata: {"id":"101-1","blockNumber":"101"}\n\n'
    for (const text of await read()) expect(text).toBe(position)
    await Promise.all([heartbeat, published])
    await Promise.all([
      subscribers.sendHeartbeats(inSeconds(30)),
      read().then(texts => expect(texts).toEqual(texts.map(() => ': heartbeat\n\n'))),
    ])
  }))

it('a client chooses how often it gets a heartbeat', () =>
  withLog(async log => {
    const { open, subscribers } = openStreams(log)
    const often = listen(new Response(open({}, undefined, 'a', 4)))
    const seldom = listen(new Response(open({}, undefined, 'a', 60)))
    await Promise.all([often.open(), seldom.open()])
    const heartbeats = ({ comments }: StreamListener) => comments.filter(comment => comment === 'heartbeat').length
    for (let second = 1; second <= 12; second++) await subscribers.sendHeartbeats(inSeconds(second))
    await often.until(() => heartbeats(often) === 3)
    await subscribers.sendHeartbeats(inSeconds(60))
    await seldom.until(() => heartbeats(seldom) === 1)
    await often.until(() => heartbeats(often) === 4)
  }))

it('streams of a restored log get no event of the lost one', () =>
  withLog(async log => {
    const { open, publish, subscribers, window } = openStreams(log)
    const start = log.newest()
    const lost = Array.from({ length: 20 }, () => listen(new Response(open({}))))
    const published = publish(log.appendFromChain([trade(101, 0)], { block: 101, hash: HASH }))
    const heartbeat = subscribers.sendHeartbeats(inSeconds(15))
    subscribers.disconnectAll(new Error('restored'))
    window.startAt(start)
    const restored = listen(new Response(open({}, start)))
    await Promise.all([published, heartbeat])
    await subscribers.sendHeartbeats(inSeconds(30))
    await restored.until(() => restored.comments.includes('heartbeat'))
    expect(restored.events).toEqual([])
    expect(restored.lastEventId()).toBe(start.id)
    for (const stream of lost) await expect(stream.until(() => false)).rejects.toThrow('restored')
  }))

it('a client that resumes within the newest events of an object causes no read of the log', () =>
  withLog(async log => {
    const { open, publish, readLog } = openStreams(log)
    const start = log.newest()
    publish(log.appendFromChain([trade(101, 0), trade(102, 0, 8)], { block: 102, hash: HASH }))
    publish([log.withdraw({ id: 1, ancestor: 101, lost: 102 })])
    const [all, ofAgent] = [listen(new Response(open({}, start))), listen(new Response(open({ agentId: 7 }, start)))]
    await all.until(() => all.events.length === 3)
    await ofAgent.until(() => ofAgent.events.length === 2)
    expect(all.events.map(({ id }) => id)).toEqual(['101-0', '102-0', `102-${FIRST}`])
    expect(all.events[2]?.data.withdrawn).toEqual(['102-0'])
    expect(ofAgent.events[1]?.data.withdrawn).toEqual([])
    expect(readLog).not.toHaveBeenCalled()
  }))

it('streams that resume after a restart of their object share one read; older ones read a few at a time', () =>
  withLog(async log => {
    const padding = 'x'.repeat(1_000)
    const start = log.newest()
    const missed = Array.from({ length: 600 }, (_, logIndex) => {
      const event = trade(101, logIndex)
      return { ...event, data: { ...event.data, padding } }
    })
    const logged = log.appendFromChain(missed, { block: 101, hash: HASH })
    const { open, publish, readLog } = openStreams(log)
    const recent = Array.from({ length: 9 }, () => listen(new Response(open({}, logged[580]))))
    await Promise.all(recent.map(stream => stream.until(() => stream.events.length === 19)))
    expect(readLog.mock.calls).toEqual([[undefined, log.newest().seq - 512, 512]])

    let running = 0
    let most = 0
    const { page } = log
    readLog.mockImplementation(async (...query) => {
      most = Math.max(most, ++running)
      await nextTurn()
      running--
      return page(...query)
    })
    const old = Array.from({ length: 20 }, (_, client) =>
      listen(new Response(open({ agentId: 7 }, start, `${client}`))),
    )
    await Promise.all(old.map(stream => stream.until(() => stream.events.length === 600)))
    expect(old.map(({ events }) => events.map(({ id }) => id))).toEqual(old.map(() => logged.map(({ id }) => id)))
    expect(most).toBe(8)
    publish(log.appendFromChain([trade(102, 0)], { block: 102, hash: HASH }))
    await Promise.all([...recent, ...old].map(stream => stream.until(() => stream.events.at(-1)?.id === '102-0')))
  }))

it('a stream that is behind stops in the middle of a page once its buffer is full', () =>
  withLog(async log => {
    const start = log.newest()
    const padding = 'x'.repeat(4_000)
    const events = Array.from({ length: 600 }, (_, logIndex) => ({ ...trade(101, logIndex), data: { padding } }))
    log.appendFromChain(events, { block: 101, hash: HASH })
    const { open, readLog } = openStreams(log)
    const reader = open({ agentId: 7 }, start).getReader()
    const pages = () => readLog.mock.calls.filter(([filter]) => filter?.agentId === 7).length
    let bytes = 0
    // The next page is read once the buffer is empty.
    while (pages() < 2) bytes += (await reader.read()).value?.length ?? 0
    expect(bytes).toBeLessThan(48 * 1024)
    await reader.cancel()
  }))

it('a stream that is ahead of its object gets no event twice, and no older position', () =>
  withLog(async log => {
    const { open, publish, subscribers } = openStreams(log)
    const pushed = log.appendFromChain([trade(101, 0)], { block: 101, hash: HASH })
    const ahead = listen(new Response(open({})))
    await ahead.open()
    await subscribers.sendHeartbeats(inSeconds(15))
    await publish(pushed)
    await publish(log.appendFromChain([trade(102, 0)], { block: 102, hash: HASH }))
    await ahead.until(() => ahead.events.length > 0)
    expect(ahead.events.map(({ id }) => id)).toEqual(['102-0'])
    expect(ahead.positions).toHaveLength(1)
    expect(ahead.comments).toEqual(['heartbeat'])
  }))

it('a shard that does not respond is called again after ten seconds', () =>
  withLog(async log => {
    const batches: number[] = []
    const feed = createShardFeed(createSqlStorage(), (_shard, { after }) => {
      batches.push(after)
      return batches.length === 1 ? new Promise(() => {}) : Promise.resolve(1)
    })
    feed.register('shard')
    const logFailure = vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.useFakeTimers()
    const sent = [feed.publish(log.appendOffChain([intent])), feed.publish(log.appendOffChain([intent]))]
    await vi.advanceTimersByTimeAsync(10_100)
    vi.useRealTimers()
    await Promise.all(sent)
    logFailure.mockRestore()
    expect(batches).toEqual([1, 2])
  }))

it('with many streams, every shard gets what is logged within a pause in one push', () =>
  withLog(async log => {
    const pushed: string[] = []
    const feed = createShardFeed(createSqlStorage(), async (shard, { events }) => {
      pushed.push(`${shard} ${events.length}`)
      return shard === 'crowded' ? 200 : 1
    })
    feed.register('crowded')
    feed.register('quiet')
    vi.useFakeTimers()
    const sent: Promise<void>[] = []
    for (let event = 0; event < 3; event++) {
      sent.push(feed.publish(log.appendOffChain([intent])))
      await vi.advanceTimersByTimeAsync(50)
    }
    await vi.advanceTimersByTimeAsync(500)
    vi.useRealTimers()
    expect(pushed.toSorted()).toEqual(['crowded 1', 'crowded 2', 'quiet 1', 'quiet 2'])
    await Promise.all(sent)
  }))

it('a client that stops reading for a minute is disconnected; others get the heartbeats', () =>
  withLog(async log => {
    const { open, publish, subscribers } = openStreams(log)
    const alive = listen(new Response(open({})))
    const dead = open({}).getReader()
    const heartbeats = () => alive.comments.filter(comment => comment === 'heartbeat').length
    const padding = 'x'.repeat(40_000)
    publish(log.appendOffChain([{ ...intent, data: { padding } }]))
    for (let sent = 0; sent < 5; sent++) {
      await alive.until(() => heartbeats() === sent && alive.events.length > 0)
      await subscribers.sendHeartbeats(inSeconds(15 * (sent + 1)))
    }
    await alive.until(() => heartbeats() === 5)
    expect(alive.lastEventId()).toBe(log.newest().id)
    expect(subscribers.size()).toBe(1)
    await expect(dead.read()).rejects.toThrow('has not read its events')
    await alive.leave()
    expect(subscribers.size()).toBe(0)
  }))

/** Logs blocks with a trade of each of the given agents, and returns the ids. */
const logBlocks = (log: EventLog, from: number, count: number, ...agents: number[]) =>
  Array.from({ length: count }, (_, index) => from + index).flatMap(block =>
    log
      .appendFromChain(
        agents.map((agent, logIndex) => trade(block, logIndex, agent)),
        { block, hash: HASH },
      )
      .map(({ id }) => id),
  )
const SMALL: Retention = { minAgeMs: 1_000, perAgentAndType: 3, total: 60, prices: 6, interval: 10 }

it('rows of other agents push out none of an agent: its stream resumes from each of its ids, and from an id of theirs', () =>
  withLog((log, reopen) => {
    vi.useFakeTimers()
    const [first = '', second = ''] = logBlocks(log, 101, 1, 7, 7)
    const [ofOther = ''] = logBlocks(log, 102, 1, 8)
    for (let block = 103; block < 400; block += 3) {
      vi.advanceTimersByTime(5_000)
      logBlocks(log, block, 3, 8)
    }
    vi.useRealTimers()
    const own = { agentId: 7 }
    for (const opened of [log, reopen()]) {
      expect(idsAfter(opened, '100-999999', own)).toEqual([first, second])
      expect(idsAfter(opened, first, own)).toEqual([second])
      expect(idsAfter(opened, ofOther, own)).toEqual([])
      expect(idsAfter(opened, '250-3', own)).toEqual([])
      // The other agent lost its own rows. A stream with them cannot resume before them, and says so.
      expect(idsAfter(opened, ofOther, { agentId: 8 })).toBe('unknown')
      expect(idsAfter(opened, first)).toBe('unknown')
      expect(idsAfter(opened, '398-0', { agentId: 8 })).toEqual(['399-0'])
      expect(opened.page({}, 0, 1_000).events.length).toBeLessThan(20)
      expect(opened.gapAfter(own, 0)).toBeUndefined()
      expect(opened.gapAfter({}, 0)).toBeDefined()
    }
  }, SMALL))

const [NVDA, AAPL, MSFT] = ['0x0a', '0x0b', '0x0c'] as const
const price = (block: number, logIndex: number, token: `0x${string}`) => ({
  type: 'price' as const,
  agentId: undefined,
  vault: undefined,
  token,
  data: { token },
  block,
  logIndex,
})

it('prices push out no other row, and each token keeps its newest one', () =>
  withLog(log => {
    const start = log.newest().id
    log.appendFromChain([trade(101, 0), price(101, 1, MSFT)], { block: 101, hash: HASH })
    for (let block = 102; block < 300; block++)
      log.appendFromChain([price(block, 0, NVDA), price(block, 1, AAPL)], { block, hash: HASH })
    const rows = log.page(undefined, 0, 1_000).events.map(({ id }) => id)
    expect(rows).toEqual(expect.arrayContaining(['101-0', '101-1', '299-0', '299-1']))
    expect(rows.length).toBeLessThan(6 + 2 + 10)
    expect(idsAfter(log, start, { agentId: 7, tokens: [NVDA, MSFT] })).toEqual(['101-0', '101-1', '299-0'])
    expect(idsAfter(log, '150-1', { tokens: [AAPL, NVDA] })).toEqual(['299-0', '299-1'])
    expect(idsAfter(log, start)).toEqual(['101-0'])
  }, SMALL))

it('a stream that reads slowly gets the newest price of each token, and one that keeps up gets every price', () =>
  withLog(async log => {
    const { open, publish } = openStreams(log)
    const filter = { tokens: [NVDA] }
    const fast = listen(new Response(open(filter)))
    const slow = open(filter).getReader()
    await fast.open()
    const padding = 'x'.repeat(2_000)
    for (let block = 101; block <= 1_000; block++) {
      const posts = [price(block, 0, NVDA), price(block, 1, AAPL)].map(post => ({ ...post, data: { padding } }))
      await publish(log.appendFromChain(posts, { block, hash: HASH }))
      await fast.until(() => fast.events.at(-1)?.id === `${block}-0`)
    }
    expect(fast.events).toHaveLength(900)
    let text = ''
    const ids = () => [...text.matchAll(/^id: (.*)\nevent: price$/gm)].map(([, id]) => id)
    while (ids().at(-1) !== '1000-0') text += new TextDecoder().decode((await slow.read()).value)
    expect(ids().length).toBeLessThan(100)
    expect(ids()[0]).toBe('101-0')
  }))

it('a reorg lists the prices that it withdrew to the streams with their tokens, and the price before counts again', () =>
  withLog(log => {
    log.appendFromChain([price(101, 0, NVDA)], { block: 101, hash: HASH })
    log.appendFromChain([price(102, 0, NVDA), price(102, 1, AAPL)], { block: 102, hash: HASH })
    const after = log.newest().seq - 3
    log.withdraw({ id: 1, ancestor: 101, lost: 102 })
    const shown = (filter: EventFilter) =>
      log.page(filter, after, 10).events.map(event => [event.id, JSON.parse(dataFor(event, filter)).withdrawn])
    expect(shown({ tokens: [NVDA] })).toEqual([
      ['101-0', undefined],
      [expect.any(String), ['102-0']],
    ])
    expect(shown({ agentId: 7, tokens: [AAPL] })).toEqual([[expect.any(String), ['102-1']]])
    expect(shown({})).toEqual([[expect.any(String), []]])
  }))

it('every stream resumes from an id of the last two days, however many events followed', () =>
  withLog(log => {
    const ids = logBlocks(log, 101, 50, 8)
    expect(idsAfter(log, ids[0] ?? '')).toEqual(ids.slice(1))
  }, SMALL))

it('a log that is full deletes the oldest rows of the agent that has most, and no reorg', () =>
  withLog(log => {
    const own = logBlocks(log, 101, 4, 7)
    const reorg = log.withdraw({ id: 1, ancestor: 104, lost: 104 })
    logBlocks(log, 105, 95, 8)
    const all = log.page({}, 0, 1_000).events
    expect(all.length).toBeLessThanOrEqual(SMALL.total + SMALL.interval)
    expect(all.slice(0, 5).map(({ id }) => id)).toEqual([...own, reorg.id])
    expect(idsAfter(log, own[3] ?? '', { agentId: 7 })).toEqual([reorg.id])
  }, SMALL))
