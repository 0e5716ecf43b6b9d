import { expect, it } from 'vitest'
import { actionMarksOf } from '../../web/src/parts/action-marks.ts'

const HOUR = 3_600
const at = (text: string) => Date.parse(`${text} UTC`) / 1_000

// The changes that the tokens of chain 4663 had, at their times; of seven only the range is known.
const observed = [
  ['CRWD', '1', '4', '2026-07-02 13:30'],
  ['SGOV', '1', '1.000957519890990718', '2026-07-08 20:14'],
  ['SGOV', '1.000957519890990718', '1.002981519346766532', '2026-08-07 15:10'],
  ['SGOV', '1.002981519346766532', '1.005101770003214918', '2026-09-01 00:00'],
  ['CCL', '1', '1.021486444855206408', '2026-08-31 15:10'],
  ['MU', '1', '1.000064', '2026-07-24 15:10'],
  ['ORCL', '1', '1.0004', '2026-07-24 15:10'],
  ['DELL', '1', '1.0008', '2026-07-31 15:10'],
  ['ASML', '1', '1.0011', '2026-08-05 15:10'],
  ['COST', '1', '1.0015', '2026-08-14 15:10'],
  ['AAPL', '1', '1.0018', '2026-08-13 15:10'],
  ['F', '1', '1.00221', '2026-09-02 15:10'],
  ['NVDA', '1', '1.000775159164630595', '2026-09-10 00:00'],
  ['SPY', '1', '1.001717991187472003', '2026-09-18 00:00'],
] as const

const barsAround = (time: number) =>
  Array.from({ length: 5 }, (_, index) => {
    const middle = Math.floor(time / HOUR) * HOUR + HOUR / 2 + (index - 2) * HOUR
    return { time: middle, seconds: HOUR, close: 100 + index }
  })
const actionOf = (state: 'announced' | 'effective' | 'replaced', from: string, to: string, time: number) => ({
  state,
  oldMultiplier: from,
  newMultiplier: to,
  effectiveAt: `${time}`,
})

it.each(observed)(
  'the price chart marks the change of %s from %s to %s at %s, on the candle of its time',
  (...change) => {
    const [, from, to, text] = change
    const time = at(text)
    expect(actionMarksOf([actionOf('effective', from, to, time)], barsAround(time))).toEqual([
      {
        time,
        value: 102,
        tone: 'action',
        text: `Corporate action: one token stands for ${to} shares instead of ${from}`,
      },
    ])
  },
)

it('the price chart marks no change that is announced, was replaced, or was before its first candle', () => {
  const time = at('2026-07-02 13:30')
  const bars = barsAround(time)
  expect(actionMarksOf([actionOf('announced', '1', '4', time), actionOf('replaced', '1', '3', time)], bars)).toEqual([])
  expect(actionMarksOf([actionOf('effective', '1', '4', time - 9 * HOUR)], bars)).toEqual([])
})
