import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createParallelGate, type Leave } from '../../src/parallel-gate.ts'

const options = {
  places: 2,
  placesBesidePriority: 1,
  maxHoldMs: 15_000,
  maxParallel: 4,
  maxWaitingPerKey: 2,
  maxWaitMs: 2_000,
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Lets requests in one after another, and records who has entered or was refused, in this order. */
function visits(gate: ReturnType<typeof createParallelGate>) {
  const log: string[] = []
  const leaves = new Map<string, Leave>()
  const visit = async (name: string, mustEnter = false) => {
    const key = name[0] ?? ''
    const leave = await gate.enter(key, { mustEnter })
    log.push(leave === undefined ? `${name} refused` : name)
    if (leave) leaves.set(name, leave)
  }
  const leave = async (name: string) => {
    leaves.get(name)?.()
    await vi.advanceTimersByTimeAsync(10)
  }
  return { log, visit, leave }
}

test('the keys take turns, however many requests one of them has waiting', async () => {
  const { log, visit, leave } = visits(createParallelGate(options))
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void visit(name)
  await vi.advanceTimersByTimeAsync(0)
  expect(log).toEqual(['a1', 'b1'])
  await leave('a1')
  await leave('b1')
  await leave('a2')
  await leave('b2')
  expect(log).toEqual(['a1', 'b1', 'a2', 'b2', 'c1', 'a3'])
})

test('for a second after a request with priority, fewer turns hold a place', async () => {
  const gate = createParallelGate(options)
  const { log, visit, leave } = visits(gate)
  gate.notePriority()
  for (const name of ['a1', 'b1', 'c1']) void visit(name)
  await vi.advanceTimersByTimeAsync(980)
  expect(log).toEqual(['a1'])
  gate.notePriority()
  await leave('a1')
  expect(log).toEqual(['a1', 'b1'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(log).toEqual(['a1', 'b1', 'c1'])
})

test('for a second after a request with priority, one stream opens at a time', async () => {
  const gate = createParallelGate({ ...options, places: 4, placesBesidePriority: 2 })
  const entered: string[] = []
  const enter = async (key: string, opensStream: boolean) => {
    const leave = await gate.enter(key, { opensStream })
    entered.push(key)
    return leave
  }
  gate.notePriority()
  const first = await enter('a', true)
  const others = [enter('b', true), enter('c', false)]
  await vi.advanceTimersByTimeAsync(10)
  expect(entered).toEqual(['a', 'c'])
  first?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(entered).toEqual(['a', 'c', 'b'])
  await vi.advanceTimersByTimeAsync(1_000)
  await Promise.all([...others, enter('d', true)])
  expect(entered).toEqual(['a', 'c', 'b', 'd'])
})

test('a key with too many requests waiting is refused at once, and one that waits too long after its wait', async () => {
  const { log, visit } = visits(createParallelGate(options))
  for (const name of ['a1', 'a2', 'a3', 'a4']) void visit(name)
  await vi.advanceTimersByTimeAsync(1_990)
  expect(log).toEqual(['a1', 'a4 refused'])
  await vi.advanceTimersByTimeAsync(10)
  expect(log).toEqual(['a1', 'a4 refused', 'a2 refused', 'a3 refused'])
})

test('a request that must enter is never refused', async () => {
  const { log, visit } = visits(createParallelGate(options))
  for (const name of ['a1', 'a2']) void visit(name)
  void visit('a3', true)
  void visit('a4', true)
  await vi.advanceTimersByTimeAsync(1_990)
  expect(log).toEqual(['a1'])
  await vi.advanceTimersByTimeAsync(10)
  expect(log.toSorted()).toEqual(['a1', 'a2 refused', 'a3', 'a4'])
})

test('requests that must enter beyond those that may wait look for no turn, so that they cost little', async () => {
  const { log, visit } = visits(createParallelGate(options))
  for (let count = 0; count < 1_000; count++) void visit('a', true)
  await vi.advanceTimersByTimeAsync(0)
  let firedTimers = 0
  for (; log.length < 1_000; firedTimers++) await vi.advanceTimersToNextTimerAsync()
  expect(firedTimers).toBeLessThan(1_500)
})

test('a turn whose request was lost does not keep others out for good, and leaving twice frees one place', async () => {
  const gate = createParallelGate(options)
  const lost = await gate.enter('a')
  await vi.advanceTimersByTimeAsync(15_000)
  const found = await gate.enter('a')
  expect(found).toBeDefined()
  lost?.()
  const { log, visit } = visits(gate)
  void visit('a1')
  await vi.advanceTimersByTimeAsync(0)
  expect(log).toEqual([])
  found?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(log).toEqual(['a1'])
})

test('a turn that lasts long frees its place, until too many turns run', async () => {
  const { log, visit, leave } = visits(createParallelGate({ ...options, maxHoldMs: 100, maxWaitingPerKey: 10 }))
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1']) void visit(name)
  await vi.advanceTimersByTimeAsync(90)
  expect(log).toEqual(['a1', 'b1'])
  await vi.advanceTimersByTimeAsync(30)
  expect(log).toEqual(['a1', 'b1', 'a2'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(log).toEqual(['a1', 'b1', 'a2'])
  await leave('a1')
  await vi.advanceTimersByTimeAsync(110)
  expect(log).toEqual(['a1', 'b1', 'a2', 'a3'])
})
