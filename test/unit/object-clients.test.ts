import type { IntakeClosure } from '@agent-trading-service/protocol/intake-kind'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createExecutor } from '../../src/executor/client.ts'
import type { ExecutorLaneObject } from '../../src/executor/object.ts'
import type { RelayOutcome, RelayRequest } from '../../src/executor/relay-types.ts'
import { createIntakeSwitches } from '../../src/intake-switches/client.ts'
import type { IntakeSwitchesObject } from '../../src/intake-switches/object.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Returns a function whose calls end like these, in this order. */
function callsThatEndLike<Result>(...ends: (() => Promise<Result>)[]) {
  const rest = ends.values()
  return vi.fn(async (): Promise<Result> => (rest.next().value ?? fails)())
}
const fails = async () => {
  throw new Error('one call too many')
}
const neverEnds = () => new Promise<never>(() => {})

const closure: IntakeClosure = { kind: 'buys', reason: 'maintenance', since: 1 }
function switchesOver(closures: () => Promise<IntakeClosure[]>, change?: () => Promise<IntakeClosure[]>) {
  const namespace: unknown = { getByName: () => ({ closures, change }) }
  return createIntakeSwitches(namespace as DurableObjectNamespace<IntakeSwitchesObject>)
}

test('a request does not wait for the switches that another one reads, which may have ended', async () => {
  const switches = switchesOver(callsThatEndLike(neverEnds, async () => [closure]))
  void switches.closures()
  expect(await switches.closures()).toEqual([closure])
})

test('one request reads the switches before they are too old, and the others use what is known until then', async () => {
  const read = callsThatEndLike(
    async () => [closure],
    neverEnds,
    async () => [],
  )
  const switches = switchesOver(read)
  await switches.closures()
  vi.setSystemTime(Date.now() + 1_500)
  void switches.closures()
  expect(await switches.closures()).toEqual([closure])
  expect(read).toHaveBeenCalledTimes(2)
  vi.setSystemTime(Date.now() + 500)
  expect(await switches.closures()).toEqual([])
})

test('a change is in force after two seconds, even if the reads before and after it are slow', async () => {
  const slow = Promise.withResolvers<IntakeClosure[]>()
  const read = callsThatEndLike(
    () => slow.promise,
    neverEnds,
    async () => [closure],
  )
  const switches = switchesOver(read)
  const overlapping = switches.closures()
  await vi.advanceTimersByTimeAsync(400)
  slow.resolve([])
  expect(await overlapping).toEqual([])
  vi.setSystemTime(Date.now() + 1_590)
  void switches.closures()
  vi.setSystemTime(Date.now() + 10)
  expect(await switches.closures()).toEqual([closure])
})

test('a read that overlaps a change of the same isolate does not undo it', async () => {
  const slow = Promise.withResolvers<IntakeClosure[]>()
  const switches = switchesOver(
    callsThatEndLike(() => slow.promise),
    async () => [closure],
  )
  const overlapping = switches.closures()
  await switches.change([{ kind: 'buys', reason: closure.reason }])
  slow.resolve([])
  expect([await overlapping, await switches.closures()]).toEqual([[closure], [closure]])
})

const key = `0x${'11'.repeat(32)}` as const
const request: RelayRequest = {
  digest: key,
  kind: 'settle',
  by: { as: 'payer', account: `0x${'33'.repeat(20)}` },
  groupNonce: '0',
  deadline: 0n,
  call: { to: `0x${'22'.repeat(20)}`, data: '0x' },
}
const breaks = async () => {
  throw new Error('the object broke')
}
const isOverloaded = async () => {
  throw Object.assign(new Error('too many queued requests'), { overloaded: true })
}

test.each<[string, (() => Promise<RelayOutcome>)[], RelayOutcome]>([
  ['refused as overloaded is busy', [isOverloaded], { state: 'busy', retryAfterSeconds: 1 }],
  [
    'that breaks and is then refused as overloaded has an unknown outcome',
    [breaks, isOverloaded],
    { state: 'unknown' },
  ],
  ['that breaks twice has an unknown outcome', [breaks, breaks], { state: 'unknown' }],
])('a call of a lane %s', async (_, ends, outcome) => {
  const lane = { relay: callsThatEndLike(...ends) }
  const namespace: unknown = { idFromName: (name: string) => name, get: () => lane }
  const executor = createExecutor(namespace as DurableObjectNamespace<ExecutorLaneObject>, [key], {
    inclusionTimeoutMs: 3_000,
  })
  expect(await executor.relay(request)).toEqual(outcome)
  expect(lane.relay).toHaveBeenCalledTimes(ends.length)
})
