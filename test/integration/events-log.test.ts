import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { type Fact, FIRST_FACT } from '../../src/live/event.ts'
import { type Log, openLog } from '../../src/live/store.ts'
import { createAudience } from '../../src/live/subscribers.ts'
import { listen } from '../support/event-stream.ts'

// What streams are made of, over the storage of an object of its own.

const HASH = '0x00'
let objects = 0

/** A log that begins at the end of block 100, in the storage of a fresh object. */
function withLog(test: (log: Log, again: () => Log) => Promise<void> | void): Promise<void> {
  const stub = env.EVENT_STREAMS.getByName(`log ${++objects}`)
  return runInDurableObject(stub, async (_, { storage }) => {
    const log = openLog(storage.sql)
    log.begin(100, HASH, 0)
    await test(log, () => openLog(storage.sql))
  })
}
const trade = (block: number, logIndex: number, agentId = 7) => {
  const fact: Fact = { type: 'trade', agentId, vault: undefined, data: { n: `${block}-${logIndex}`, agentId } }
  return { ...fact, block, logIndex }
}
const intent: Fact = { type: 'intent', agentId: 7, vault: undefined, data: {} }
const idsAfter = (log: Log, id: string) => {
  const after = log.resolve(id)
  return typeof after === 'number' ? log.page({}, after, 100).entries.map(entry => entry.id) : after
}

it('an id is block and log index; what is no log comes after all logs of the newest block', () =>
  withLog(log => {
    const first = log.addFacts([intent])
    const logs = log.addLogs([trade(101, 0), trade(103, 4)], { block: 105, hash: HASH })
    const last = log.addFacts([intent, intent])
    expect([...first, ...logs, ...last].map(({ id }) => id)).toEqual([
      ...[`100-${FIRST_FACT + 1}`, '101-0', '103-4', `105-${FIRST_FACT}`, `105-${FIRST_FACT + 1}`],
    ])
  }))

it('a place that the chain comes to again has the number of the branch in its id, above it none has', () =>
  withLog(log => {
    log.addLogs([trade(101, 0), trade(102, 1)], { block: 104, hash: HASH })
    const reorg = log.withdraw({ id: 1, ancestor: 101, lost: 104 })
    expect([reorg.id, JSON.parse(reorg.data).withdrawn]).toEqual([
      `104-${FIRST_FACT}`,
      [{ id: '102-1', agentId: 7, vault: null }],
    ])
    const again = log.addLogs([trade(102, 1), trade(105, 0)], { block: 106, hash: HASH })
    expect(again.map(({ id }) => id)).toEqual(['102-1.1', '105-0'])
    const second = log.withdraw({ id: 2, ancestor: 100, lost: 106 })
    expect(JSON.parse(second.data).withdrawn.map(({ id }: { id: string }) => id)).toEqual(['101-0', '102-1.1', '105-0'])
  }))

it('whoever comes back is sent what came after it, from whatever branch', () =>
  withLog((log, again) => {
    log.addLogs([trade(101, 0), trade(102, 1)], { block: 104, hash: HASH })
    log.withdraw({ id: 1, ancestor: 101, lost: 104 })
    log.addLogs([trade(102, 1), trade(105, 0)], { block: 106, hash: HASH })
    for (const kept of [log, again()]) {
      expect(idsAfter(kept, '101-0')).toEqual(['102-1', `104-${FIRST_FACT}`, '102-1.1', '105-0'])
      expect(idsAfter(kept, '102-1')).toEqual([`104-${FIRST_FACT}`, '102-1.1', '105-0'])
      expect(idsAfter(kept, '102-1.1')).toEqual(['105-0'])
      expect(idsAfter(kept, '105-0')).toEqual([])
      // Where nothing was sent: above what was ever lost places only grow, below they say nothing.
      expect(idsAfter(kept, '104-999999')).toBe('forgotten')
      expect(idsAfter(kept, '105-999999')).toEqual([])
      expect(idsAfter(kept, '106-3')).toEqual([])
      expect(idsAfter(kept, '107-0')).toBe('ahead')
      expect(idsAfter(kept, '99-999999')).toBe('forgotten')
      expect(idsAfter(kept, '105-0.1')).toBe('forgotten')
    }
  }))

it('a place between two events is gone on from, back to where the log begins', () =>
  withLog(log => {
    log.addLogs([trade(101, 5), trade(103, 2)], { block: 104, hash: HASH })
    expect(idsAfter(log, '100-999999')).toEqual(['101-5', '103-2'])
    expect(idsAfter(log, '100-3')).toBe('forgotten')
    expect(idsAfter(log, '101-4')).toEqual(['101-5', '103-2'])
    expect(idsAfter(log, '102-999999')).toEqual(['103-2'])
  }))

it('a chain that is another one withdraws everything, and the log begins anew on it', () =>
  withLog(log => {
    log.addLogs([trade(101, 5)], { block: 104, hash: HASH })
    const reorg = log.withdraw({ id: 0, ancestor: -1, lost: 104 })
    expect(JSON.parse(reorg.data)).toMatchObject({ commonAncestor: null, withdrawn: [{ id: '101-5' }] })
    log.begin(9, HASH, 0)
    expect(log.addLogs([trade(10, 0)], { block: 10, hash: HASH })[0]?.id).toBe('10-0.1')
    expect(idsAfter(log, '101-5')).toEqual([reorg.id, '10-0.1'])
  }))

it('a flag is kept until it is lowered', () =>
  withLog((log, again) => {
    log.raise('stale')
    log.raise('breach')
    log.lower('stale')
    expect([...again().flags]).toEqual(['breach'])
  }))

it('a reader that is slow costs no memory, and is sent everything once, in order', () =>
  withLog(async log => {
    const fromLog = vi.spyOn(log, 'page')
    const audience = createAudience(log)
    const slow = listen(new Response(audience.open({ agentId: 7 }, log.tip().seq, log.tip().id)))
    await slow.until(() => slow.comments.includes('open'))
    fromLog.mockClear()
    const padding = 'x'.repeat(1_000)
    const expected: string[] = []
    for (let block = 101; block <= 600; block++) {
      const facts = [trade(block, 0), trade(block, 1, 8)].map(fact => ({ ...fact, data: { ...fact.data, padding } }))
      const [entry] = log.addLogs(facts, { block, hash: HASH })
      expected.push(entry?.id ?? '')
      audience.publish(log.page({}, log.tip().seq - 2, 2).entries)
    }
    await slow.until(() => slow.events.length === expected.length)
    expect(slow.events.map(({ id }) => id)).toEqual(expected)
    expect(fromLog.mock.calls.some(([subject]) => subject.agentId === 7)).toBe(true)
    audience.publish(log.addLogs([trade(601, 0)], { block: 601, hash: HASH }))
    expect((await slow.until(() => slow.events.find(({ id }) => id === '601-0'))).event).toBe('trade')
  }))

it('a reader that reads nothing for a minute is cut off; one that reads is told that the stream lives', () =>
  withLog(async log => {
    const audience = createAudience(log)
    const alive = listen(new Response(audience.open({}, log.tip().seq, log.tip().id)))
    const dead = audience.open({}, log.tip().seq, log.tip().id).getReader()
    const padding = 'x'.repeat(40_000)
    audience.publish(log.addFacts([{ ...intent, data: { padding } }]))
    for (let beats = 0; beats < 5; beats++) {
      await alive.until(
        () => alive.comments.filter(comment => comment === 'heartbeat').length === beats && alive.events.length > 0,
      )
      audience.beat()
    }
    await alive.until(() => alive.comments.filter(comment => comment === 'heartbeat').length === 5)
    expect(alive.lastEventId()).toBe(log.tip().id)
    expect(audience.size()).toBe(1)
    await expect(dead.read()).rejects.toThrow('not read in time')
    await alive.leave()
    expect(audience.size()).toBe(0)
  }))
