import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTurns, type Leave } from '../../src/limits/turns.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const WAIT_MS = 2_000

/** Lets requests in one after another, and records who has entered or was refused, in this order. */
function visits(enter: ReturnType<typeof createTurns>['enter']) {
  const log: string[] = []
  const leaves = new Map<string, Leave>()
  const visit = async (name: string) => {
    const leave = await enter(name[0] ?? '', WAIT_MS)
    log.push(leave === undefined ? `${name} refused` : name)
    if (leave) leaves.set(name, leave)
  }
  const leave = async (name: string) => {
    leaves.get(name)?.()
    await vi.advanceTimersByTimeAsync(20)
  }
  return { log, visit, leave }
}

test('keys take turns, however many requests one of them has waiting', async () => {
  const { log, visit, leave } = visits(createTurns(() => 2).enter)
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void visit(name)
  await vi.advanceTimersByTimeAsync(0)
  expect(log).toEqual(['a1', 'b1'])
  await leave('a1')
  await leave('b1')
  await leave('a2')
  await leave('b2')
  expect(log).toEqual(['a1', 'b1', 'a2', 'b2', 'c1', 'a3'])
})

test('the key that has used least comes next', async () => {
  const used: Record<string, number> = { a: 30, b: 10, c: 20 }
  const { log, visit, leave } = visits(createTurns(() => 2, { usedBy: key => used[key] ?? 0 }).enter)
  for (const name of ['d1', 'a1']) void visit(name)
  await vi.advanceTimersByTimeAsync(0)
  for (const name of ['a2', 'c1', 'b1', 'b2']) void visit(name)
  await leave('a1')
  await leave('d1')
  await leave('b1')
  await leave('b2')
  expect(log).toEqual(['d1', 'a1', 'b1', 'c1', 'b2', 'a2'])
})

test('a request holds its slot however long it takes, and one that waits too long is refused', async () => {
  const { log, visit, leave } = visits(createTurns(() => 2).enter)
  for (const name of ['a1', 'a2']) void visit(name)
  await vi.advanceTimersByTimeAsync(WAIT_MS - 1)
  expect(log).toEqual(['a1'])
  await vi.advanceTimersByTimeAsync(1)
  expect(log).toEqual(['a1', 'a2 refused'])
  void visit('a3')
  await leave('a1')
  expect(log).toEqual(['a1', 'a2 refused', 'a3'])
})

test('fewer requests start while there are fewer slots', async () => {
  let slots = 1
  const { log, visit, leave } = visits(createTurns(() => slots).enter)
  for (const name of ['a1', 'b1', 'c1']) void visit(name)
  await vi.advanceTimersByTimeAsync(0)
  expect(log).toEqual(['a1'])
  slots = 4
  await leave('a1')
  expect(log).toEqual(['a1', 'b1', 'c1'])
})

test('requests far back in the line look for their turn less often, so that they cost little', async () => {
  const { log, visit } = visits(createTurns(() => 2).enter)
  for (let count = 0; count < 1_000; count++) void visit('a')
  await vi.advanceTimersByTimeAsync(0)
  let firedTimers = 0
  for (; log.length < 1_000; firedTimers++) await vi.advanceTimersToNextTimerAsync()
  expect(firedTimers).toBeLessThan(10_000)
})

test('a request that the runtime has ended does not keep others out for good, and leaving twice frees one slot', async () => {
  const { enter } = createTurns(() => 2)
  const lost = await enter('a', WAIT_MS)
  await vi.advanceTimersByTimeAsync(60_000)
  const found = await enter('a', WAIT_MS)
  expect(found).toBeDefined()
  lost?.()
  const { log, visit } = visits(enter)
  void visit('a1')
  await vi.advanceTimersByTimeAsync(0)
  expect(log).toEqual([])
  found?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(log).toEqual(['a1'])
})
