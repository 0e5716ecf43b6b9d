import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ageSeconds, clockSkewSeconds, noteNodeTime, nowAt, timeIfOld } from '../../src/clock.ts'

let now = 1_800_000_000
const httpDate = (seconds: number) => new Date(seconds * 1_000).toUTCString()
const block = (seconds: number) => ({ timestamp: BigInt(seconds) })

beforeEach(() => {
  now += 3_600 // what nodes said counts no more
  vi.useFakeTimers({ now: now * 1_000 })
})
afterEach(() => void vi.useRealTimers())

it('a clock that is ten minutes behind the chain and the nodes is corrected by the nodes', () => {
  for (const node of ['one', 'two']) noteNodeTime(node, httpDate(now + 600))
  const newest = block(now + 598)
  expect(clockSkewSeconds(newest)).toBe(-600)
  expect(nowAt(newest)).toBe(BigInt(now + 600))
  expect(ageSeconds(newest)).toBe(2)
})

it('without a time of any node, a block that is ahead of the clock gives the time', () => {
  expect(clockSkewSeconds(block(now + 600))).toBe(0)
  expect(nowAt(block(now + 600))).toBe(BigInt(now + 600))
  expect(ageSeconds(block(now + 600))).toBe(0)
})

it('one node with a wrong clock changes nothing', () => {
  noteNodeTime('one', httpDate(now + 600))
  noteNodeTime('two', httpDate(now))
  expect(clockSkewSeconds(block(now - 300))).toBe(0)
})

it('a block of this minute confirms the clock, whatever the nodes say', () => {
  for (const node of ['one', 'two']) noteNodeTime(node, httpDate(now + 600))
  expect(clockSkewSeconds(block(now - 5))).toBe(0)
})

it('a call is simulated at the present time once the newest block is older than reports may be ahead of it', () => {
  const onDemand = { makesBlocksOnDemand: true }
  expect(timeIfOld(block(now - 5), onDemand)).toBeUndefined()
  expect(timeIfOld(block(now - 6), onDemand)).toBe(BigInt(now))
  expect(timeIfOld(block(now - 30))).toBeUndefined()
  expect(timeIfOld(block(now - 31))).toBe(BigInt(now))
})
