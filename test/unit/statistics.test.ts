import { addHour, openScore, statisticsOf } from '@agent-trading-service/protocol/leaderboard-formulas'
import { findNoteProblem } from '@agent-trading-service/protocol/note'
import { continueRecord } from '@agent-trading-service/protocol/track-record'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { apyPpmOf, maxDrawdownOf, returnPpmOf } from '@agent-trading-service/protocol/vault-performance'
import { describe, expect, it } from 'vitest'

const share = (day: number, sharePrice: number) => ({ timestamp: BigInt(day), sharePrice: BigInt(sharePrice) })

describe('the performance of a vault', () => {
  it('the performance of a vault compares share prices and compounds the month to a year', () => {
    expect(returnPpmOf(share(0, 1_000_000), share(1, 1_030_000))).toBe(30_000)
    expect(returnPpmOf(undefined, share(1, 1_030_000))).toBeNull()
    // 0.1 % a day
    const expected = Math.trunc((1.001 ** 365 - 1) * 1e6)
    expect(apyPpmOf(share(0, 1_000_000), share(1, 1_030_000))).toBe(expected)
    expect(apyPpmOf(share(0, 1_000_000), share(1, 1_000_000))).toBe(0)
  })

  it('the performance of a vault names the peak and the bottom of its deepest fall', () => {
    const prices = [100, 120, 90, 130, 110].map((price, day) => share(day, price))
    expect(maxDrawdownOf(prices)).toEqual({ ppm: 250_000, from: '1', to: '2' })
    expect(maxDrawdownOf([share(0, 1), share(1, 2)])).toBeNull()
    expect(maxDrawdownOf([])).toBeNull()
  })
})

describe('the statistics of hours', () => {
  const score = (pnls: readonly number[]) => {
    const samples = pnls.map((pnl, hour) => ({
      ...{ hour, from: hour * 3_600, at: hour * 3_600 + 3_599, pnl: BigInt(pnl) },
      ...{ value: 500_000n, cap: 1_000_000n, trades: 1, isGap: false },
    }))
    const [first] = samples
    if (first === undefined) throw new Error('There is no hour.')
    return samples.reduce(addHour, openScore(0, first))
  }

  it('the statistics of hours divide the mean by the deviation of the losses', () => {
    const pnls = Array.from({ length: 12 }, (_, hour) => (hour % 2 === 0 ? 2_000 : -1_000))
    const mean = pnls.reduce((sum, pnl) => sum + pnl / 1e6, 0) / 12
    const downside = Math.sqrt(pnls.reduce((sum, pnl) => sum + Math.min(pnl / 1e6, 0) ** 2, 0) / 12)
    expect(statisticsOf(score(pnls))).toMatchObject({
      sortinoMilli: Math.floor((mean / downside) * Math.sqrt(8_760) * 1_000),
      exposurePpm: 500_000,
      hours: 12,
    })
    expect(statisticsOf(score(pnls.slice(1)))).toMatchObject({ sortinoMilli: null, sharpeMilli: null })
    expect(statisticsOf(score(Array.from({ length: 12 }, () => 1_000)))).toMatchObject({ sortinoMilli: null })
  })

  it('the statistics of hours date the deepest fall', () => {
    const { maxDrawdown } = statisticsOf(score([10_000, -20_000, 5_000]))
    expect(maxDrawdown).toEqual({ ppm: 19_801, from: '3599', to: '7199' })
    expect(statisticsOf(undefined)).toMatchObject({ maxDrawdown: null, hours: 0, exposurePpm: 0 })
  })
})

it('an hour after which nothing is held is sampled at its last trade, which is the last sample and the bottom of a fall', () => {
  const token = '0x00000000000000000000000000000000000000A1'
  const trade = (type: Trade['type'], timestamp: bigint, usdcAmount: bigint) =>
    ({ type, token, timestamp, usdcAmount, tokenAmount: 10n ** 18n }) as const
  const trades = [trade('PositionOpened', 3_610n, 100_000_000n), trade('PositionReduced', 3_700n, 90_000_000n)]
  const market = { priceAt: () => undefined, decimalsOf: () => 18, capAt: () => 1_000_000_000n }
  const scoreAt = (until: number) =>
    continueRecord(undefined, trades, until, market).find(({ period }) => period === 'day')?.score
  for (const until of [3_800, 7_300, 20_000]) {
    expect(scoreAt(until)).toMatchObject({ firstSample: 3_610, lastSample: 3_700 })
    expect(statisticsOf(scoreAt(until)).maxDrawdown).toEqual({ ppm: 10_000, from: '3610', to: '3700' })
  }
})

it('a note has at most 280 visible characters', () => {
  expect(findNoteProblem('x'.repeat(280))).toBeUndefined()
  expect(findNoteProblem('x'.repeat(281))).toContain('at most 280')
  expect(findNoteProblem(' ')).toContain('visible')
  expect(findNoteProblem('a\u200Bb')).toContain('U+200B')
})
