import { percentToBps, stopPercentToBps } from '@agent-trading-service/protocol/percent'
import fc from 'fast-check'
import { expect, it } from 'vitest'

it('percent becomes basis points exactly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 999_999 }), bps => {
      expect(percentToBps((bps / 100).toFixed(2))).toBe(bps)
      expect(percentToBps(`${Number((bps / 100).toFixed(2))}%`)).toBe(bps)
    }),
  )
})

it('percent that would be rounded, is zero or has a sign is no percent', () => {
  for (const text of ['', '0', '0.00', '-8', '+8', '8.125', '.5', '8.', '1e1', '10000', '8%%', 'Infinity'])
    expect(percentToBps(text), text).toBeUndefined()
})

it('a stop-loss is less than 100 percent below the entry price', () => {
  expect(stopPercentToBps('99.99')).toBe(9_999)
  for (const text of ['100', '800', '-8']) expect(stopPercentToBps(text), text).toBeUndefined()
  expect(percentToBps('800')).toBe(80_000)
})
