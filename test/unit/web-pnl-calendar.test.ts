import { expect, it } from 'vitest'
import { calendarMonth, monthOf, strengthOf } from '../../web/src/pages/agent/pnl-calendar.ts'
import { alignSeries, returnsOf } from '../../web/src/pages/compare/return-series.ts'
import { placesRisen } from '../../web/src/pages/leaderboard/rank-move.ts'

const dayOf = (text: string) => `${Date.parse(`${text}T00:00:00Z`) / 1000}`

it('lays out a month from Monday and adds up its days', () => {
  const days = [
    { day: dayOf('2026-10-31'), realizedPnlUsdc: '999' },
    { day: dayOf('2026-11-01'), realizedPnlUsdc: '-40' },
    { day: dayOf('2026-11-30'), realizedPnlUsdc: '100' },
  ]
  const { name, weeks, sum } = calendarMonth(monthOf(Number(days[1]?.day)), days)
  expect([name, sum, weeks.length]).toEqual(['November 2026', '60', 6])
  expect(weeks[0]?.map(day => day?.date)).toEqual([...Array(6).fill(undefined), 1]) // a Sunday
  expect(weeks[0]?.[6]?.pnl).toBe('-40')
  expect(weeks[5]?.[0]).toEqual({ date: 30, pnl: '100' })
  expect(weeks.every(week => week.length === 7)).toBe(true)
  expect(
    calendarMonth(monthOf(Number(dayOf('2028-02-29'))), [])
      .weeks.flat()
      .filter(Boolean),
  ).toHaveLength(29)
  expect(calendarMonth(monthOf(Number(dayOf('2026-12-31'))), []).name).toBe('December 2026')
  expect(days.map(({ realizedPnlUsdc }) => strengthOf(realizedPnlUsdc, days))).toEqual([3, 1, 1])
})

const point = (timestamp: number, equity: number, realized: number, unrealized: number) => ({
  timestamp: `${timestamp}`,
  equityUsdc: `${equity}`,
  realizedPnlUsdc: `${realized}`,
  unrealizedPnlUsdc: `${unrealized}`,
})

it('adds up returns on the allocation of their time, across a promotion', () => {
  const series = returnsOf([
    point(1, 1_000, 0, 0),
    point(2, 1_050, 0, 50),
    point(3, 1_100, 100, 0),
    point(4, 5_000, 100, 0), // promoted: the result before it is no part of the new capital
    point(5, 5_500, 200, 400),
  ])
  expect(series.map(({ value }) => value)).toEqual([0, 500, 1_000, 1_000, 2_000])
})

it('puts the returns of agents on the same times, which end now', () => {
  const at = (...times: number[]) => times.map(time => ({ time, value: time }))
  expect(alignSeries([at(10, 20, 33), at(20, 32)])).toEqual({
    times: [10, 20, 33],
    values: [
      [10, 20, 33],
      [undefined, 20, 32],
    ],
  })
})

it('says how many places an agent rose, for each kind of capital', () => {
  const entry = (agentId: string, rank: number, capital = 'real') => ({ agentId, rank, capital })
  const before = [entry('1', 1), entry('1', 2, 'simulated'), entry('2', 3)]
  expect(placesRisen(entry('2', 1), before)).toEqual({ from: 3, places: 2 })
  expect(placesRisen(entry('1', 4, 'simulated'), before)).toEqual({ from: 2, places: -2 })
  expect(placesRisen(entry('3', 2), before)).toBeUndefined()
})
