import { expect, it } from 'vitest'
import { nearestIndex, roundValues, timeTicks } from '../../web/src/parts/chart-scale.ts'

it('marks round values within the range', () => {
  expect(roundValues(4_960, 5_150, 4)).toEqual([5_000, 5_050, 5_100, 5_150])
  expect(roundValues(-0.52, 0, 2)).toEqual([-0.5, 0].map(value => expect.closeTo(value)))
  expect(roundValues(7, 7, 4)).toEqual([7])
})

it('marks round times, days by their date', () => {
  const midnight = Math.floor(new Date(2026, 10, 24).getTime() / 1000)
  const ticks = timeTicks(midnight - 20 * 3_600, midnight + 20 * 3_600, 4)
  expect(ticks.map(({ text }) => text)).toEqual(['12:00', expect.stringMatching(/^24 Nov/), '12:00'])
  expect(ticks.map(({ isMajor }) => isMajor)).toEqual([false, true, false])
  expect(timeTicks(midnight, midnight, 4)).toHaveLength(1)
})

it('marks at least one time of every span on a phone, and no two closer than their texts are wide', () => {
  const count = 228 / 96
  for (let day = 1; day <= 31; day++) {
    const start = Math.floor(new Date(2026, 9, day, 7, 43).getTime() / 1000)
    for (let span = 600; span < 2 * 365 * 86_400; span *= 1.07) {
      const times = timeTicks(start, start + span, count).map(({ at }) => at)
      expect([day, span, times.length > 0]).toEqual([day, span, true])
      for (const [index, time] of times.slice(1).entries())
        expect(time - (times[index] ?? 0)).toBeGreaterThanOrEqual(span / count)
    }
  }
})

it('finds the sample that is nearest to a time', () => {
  const times = [10, 20, 40]
  expect([0, 14, 16, 29, 31, 99].map(time => nearestIndex(times, time))).toEqual([0, 0, 1, 1, 2, 2])
})
