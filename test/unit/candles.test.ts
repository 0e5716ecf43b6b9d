import {
  type Candle,
  changeBps,
  fillCandles,
  foldCandles,
  intervalStart,
  volatilityBps,
} from '@agent-trading-service/protocol/candles'
import { describe, expect, it } from 'vitest'

const post = (start: number, price: bigint): Candle => ({
  start,
  open: price,
  high: price,
  low: price,
  close: price,
  posts: 1,
})

describe('candles', () => {
  it('candles of a week start on Monday, 00:00 UTC', () => {
    const wednesday = Date.UTC(2026, 10, 25, 13) / 1000
    expect(intervalStart(wednesday, '1w')).toBe(Date.UTC(2026, 10, 23) / 1000)
    expect(intervalStart(Date.UTC(2026, 10, 23) / 1000, '1w')).toBe(Date.UTC(2026, 10, 23) / 1000)
  })

  it('candles have the first, highest, lowest and last price of their posts', () => {
    const posts = [post(0, 10n), post(10, 30n), post(59, 5n), post(60, 7n), post(200, 8n)]
    expect(foldCandles(posts, '1m')).toEqual([
      { start: 0, open: 10n, high: 30n, low: 5n, close: 5n, posts: 3 },
      { start: 60, open: 7n, high: 7n, low: 7n, close: 7n, posts: 1 },
      { start: 180, open: 8n, high: 8n, low: 8n, close: 8n, posts: 1 },
    ])
  })

  it('candles that are folded twice are those of the posts', () => {
    const posts = Array.from({ length: 500 }, (_, index) => post(index * 37, BigInt((index * 7919) % 1000)))
    expect(foldCandles(foldCandles(posts, '5m'), '1h')).toEqual(foldCandles(posts, '1h'))
  })

  it('candles are filled with the price before, and not before the first price', () => {
    const range = { interval: '1m', from: 0, to: 240 } as const
    const filled = fillCandles([post(60, 7n), post(180, 8n)], { ...range, before: undefined })
    expect(filled.map(({ start, close, posts }) => [start, close, posts])).toEqual([
      [60, 7n, 1],
      [120, 7n, 0],
      [180, 8n, 1],
      [240, 8n, 0],
    ])
    expect(fillCandles([], { ...range, before: 3n })).toHaveLength(5)
  })

  it('a change is in basis points of the earlier price, and none without one', () => {
    expect(changeBps(200n, 201n)).toBe(50)
    expect(changeBps(201n, 200n)).toBe(-49)
    expect(changeBps(undefined, 200n)).toBeUndefined()
  })

  it('volatility is the sample standard deviation of the logarithmic returns', () => {
    const closes = [100n, 110n, 99n].map((price, index) => post(index * 60, price))
    // ln 1.1 and ln 0.9 have the mean -0.00503 and deviate by 0.10034 from it: 0.10034 * sqrt(2).
    expect(volatilityBps(closes)).toBe(1419)
    expect(volatilityBps(closes.slice(0, 2))).toBeUndefined()
  })
})
