import { expect, it } from 'vitest'
import { performanceOf, returnOver } from '../../web/src/pages/vault/performance.ts'

const DAY = 86_400
const NOW = 100 * DAY
/** A vault of 73 days, a fifth of a year: it gains a tenth, falls by a fifth, and ends ten per cent above its start. */
const points = [
  { time: NOW - 73 * DAY, price: 1_000_000n },
  { time: NOW - 40 * DAY, price: 1_100_000n },
  { time: NOW - 8 * DAY, price: 880_000n },
  { time: NOW, price: 1_100_000n },
]

it('returns the change of a share price over a period, and none over one that began before the vault', () => {
  expect(returnOver(points, NOW - 7 * DAY)).toBe(2_500)
  expect(returnOver(points, NOW - 30 * DAY)).toBe(0)
  expect(returnOver(points, NOW - 90 * DAY)).toBeUndefined()
})

it('scales the change of a whole series to a year, and finds its deepest fall', () => {
  expect(performanceOf(points, NOW)).toEqual({ totalBps: 1_000, apyBps: 6_105, drawdownBps: 2_000 })
})

it('says nothing about a year after some days, nor anything about an empty series', () => {
  expect(performanceOf(points.slice(-2), NOW - 2 * DAY).apyBps).toBeUndefined()
  expect(performanceOf([], NOW)).toEqual({ totalBps: undefined, apyBps: undefined, drawdownBps: 0 })
})
