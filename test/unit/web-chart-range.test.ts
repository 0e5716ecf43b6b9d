import { expect, it } from 'vitest'
import { RANGES, seriesQuery } from '../../web/src/parts/chart-range.ts'

const DAY = 86_400
const now = 20_000 * DAY + 5_000
const ALL = Number.POSITIVE_INFINITY

it('reads all of a series from its start on, as finely as the points of a page allow', () => {
  expect(seriesQuery(ALL, now - 3_600, now)).toEqual({ interval: '5m', from: `${now - 3_600}` })
  expect(seriesQuery(ALL, now - 24 * DAY, now)).toEqual({ interval: '1h', from: `${now - 24 * DAY}` })
  expect(seriesQuery(ALL, now - 400 * DAY, now)).toEqual({ interval: '1d', from: `${now - 400 * DAY}` })
  expect(seriesQuery(ALL, now - 4_000 * DAY, now)).toEqual({ interval: '1d', from: `${19_001 * DAY}` })
})

it('never asks for more points than the service gives', () => {
  const seconds = { '5m': 300, '1h': 3_600, '1d': DAY }
  for (const [, , period] of RANGES)
    for (const age of [1, 3_600, DAY - 1, DAY, DAY + 1, 8 * DAY, 30 * DAY, 31 * DAY, 2_000 * DAY]) {
      const query = seriesQuery(period, now - age, now)
      const [first, last] = [Number(query.from ?? now), now].map(time => Math.floor(time / seconds[query.interval]))
      expect((last ?? 0) - (first ?? 0) + 1).toBeLessThanOrEqual(1_000)
    }
})

it('asks the same a minute later, so that the series stays in view', () => {
  for (const [, , period] of RANGES)
    for (const age of [3_600, 8 * DAY, 2_000 * DAY])
      expect(seriesQuery(period, now - age, now + 60)).toEqual(seriesQuery(period, now - age, now))
})
