import { describe, expect, it } from 'vitest'
import { normalCdf, normalQuantile } from '../../rehearsal/normal-distribution.ts'
import {
  chanceOfMeanRank,
  deflatedSharpe,
  deviation,
  expectedMaxSharpe,
  maxDrawdown,
  mean,
  minTrackRecord,
  probabilisticSharpe,
  quantile,
  returnsOf,
  sharpeOf,
  underWater,
  wilsonInterval,
} from '../../rehearsal/return-statistics.ts'
import reference from './return-statistics.json' with { type: 'json' }

/** Expects a figure to equal that of NumPy, SciPy or quantstats to 1e-9, in relative terms if it is above 1. */
const expectNear = (actual: number | null, expected: number | null) => {
  if (expected === null || actual === null) return expect(actual).toBe(expected)
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(expected)))
}

describe('statistics of returns', () => {
  it.each(reference.series.map((series, index) => [index, series] as const))(
    'statistics of returns equal those of quantstats and SciPy, series %i',
    (_, { returns, trials, quantiles, ...expected }) => {
      const values = [1]
      for (const each of returns) values.push((values.at(-1) ?? 0) * (1 + each))
      expectNear(mean(returns), expected.mean)
      expectNear(deviation(returns), expected.deviation)
      expectNear(sharpeOf(returns), expected.sharpe)
      expectNear((sharpeOf(returns) ?? 0) * Math.sqrt(252), expected.annualSharpe)
      expectNear(maxDrawdown(values), expected.maxDrawdown)
      expectNear(underWater(values).share, expected.underWater)
      expectNear(probabilisticSharpe(returns), expected.probabilisticSharpe)
      expectNear(deflatedSharpe(returns, trials), expected.deflatedSharpe)
      expectNear(minTrackRecord(returns), expected.minTrackRecord)
      const spread = Math.max(deviation(trials), 1 / Math.sqrt(returns.length - 1))
      expectNear(expectedMaxSharpe(trials.length, spread), expected.expectedMaxSharpe)
      for (const [p, value] of Object.entries(quantiles)) expectNear(quantile(returns, Number(p)), value)
      for (const [index, value] of returnsOf(values).entries()) expectNear(value, returns[index] ?? null)
    },
  )

  it('shares of runs have the interval of Wilson', () => {
    for (const { met, trials, low, high } of reference.shares) {
      expectNear(wilsonInterval(met, trials).low, low)
      expectNear(wilsonInterval(met, trials).high, high)
    }
  })

  it('the normal distribution and its quantiles equal those of SciPy, also far from the middle', () => {
    for (const [x = 0, p = 0] of reference.cdf) expectNear(normalCdf(x), p)
    for (const [p = 0, x = 0] of reference.quantile) expectNear(normalQuantile(p), x)
    expect(() => normalQuantile(1)).toThrow('A probability between 0 and 1 is expected, not 1.')
  })

  it('figures that need variation or trials are not defined without them', () => {
    expect(sharpeOf([0.01])).toBeNull()
    expect(probabilisticSharpe([0, 0, 0])).toBeNull()
    expect(minTrackRecord([0.01, -0.02, -0.01])).toBeNull()
    expect(deflatedSharpe([0.01, -0.02, 0.03], [0.1])).toBe(probabilisticSharpe([0.01, -0.02, 0.03]))
    expect(underWater([1, 0.9, 0.95, 1, 0.99])).toEqual({ share: 0.6, longest: 2 })
  })

  it('ruin and equal returns have no figures that are no numbers', () => {
    expect(returnsOf([100, 50, 0, 0])).toEqual([-0.5, -1, 0])
    expect(sharpeOf(returnsOf([100, 50, 0, 0]))).toBeLessThan(0)
    expect(maxDrawdown([0, 0])).toBe(0)
    expect(sharpeOf(returnsOf([100, 110, 121, 133.1, 146.41]))).toBeNull()
    expect(probabilisticSharpe([0.1, 0.1, 0.1 + 1e-16])).toBeNull()
  })

  it('more variants need a higher Sharpe ratio, and a rank of one half is chance', () => {
    const returns = Array.from({ length: 60 }, (_, day) => 0.01 * Math.sin(day) + 0.002)
    const tried = (count: number) => deflatedSharpe(returns, Array(count).fill(0.2)) ?? 0
    expect(tried(1)).toBeGreaterThan(tried(2))
    expect(tried(2)).toBeGreaterThan(tried(100))
    expect(chanceOfMeanRank(0.5, 100)).toBeCloseTo(0.5, 12)
    expect(chanceOfMeanRank(0.6, 100)).toBeLessThan(0.001)
  })
})
