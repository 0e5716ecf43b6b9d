import {
  asSharePrice,
  asTokenPrice,
  isUnsettledPrice,
  ONE_SHARE,
  toShareAmount,
  toSharePrice,
  toTokenPrice,
} from '@agent-trading-service/protocol/price-basis'
import { describe, expect, expectTypeOf, it } from 'vitest'

const usd = (dollars: number) => BigInt(Math.round(dollars * 1e8))
const share = (dollars: number) => asSharePrice(usd(dollars))
const token = (dollars: number) => asTokenPrice(usd(dollars))

describe('the basis of a price', () => {
  it('a share price becomes a token price by the multiplier, and back', () => {
    expect(toTokenPrice(share(125), 4n * ONE_SHARE)).toBe(usd(500))
    expect(toSharePrice(token(500), 4n * ONE_SHARE)).toBe(usd(125))
    expect(toTokenPrice(share(100), 1_021_486_444_855_206_408n)).toBe(10_214_864_448n)
    expect(toShareAmount(3n * 10n ** 18n, 4n * ONE_SHARE)).toBe(12n * 10n ** 18n)
  })

  it('a token price cannot be multiplied again, and a price without a basis cannot be multiplied at all', () => {
    const input = share(1)
    expectTypeOf(toTokenPrice).returns.not.toExtend<typeof input>()
    // @ts-expect-error a token price has the multiplier in it
    toTokenPrice(toTokenPrice(share(1), ONE_SHARE), ONE_SHARE)
    // @ts-expect-error a feed's price is that of a token
    toTokenPrice(token(1), ONE_SHARE)
    // @ts-expect-error a number of dollars says nothing of its basis
    toTokenPrice(100_000_000n, ONE_SHARE)
    // @ts-expect-error the price of a share is not divided again
    toSharePrice(share(1), ONE_SHARE)
  })
})

describe('a share price around a corporate action', () => {
  const split = { oldMultiplier: ONE_SHARE, newMultiplier: 4n * ONE_SHARE, effectiveAt: 1_000n }
  const reverse = { oldMultiplier: 4n * ONE_SHARE, newMultiplier: ONE_SHARE, effectiveAt: 1_000n }
  const dividend = { oldMultiplier: ONE_SHARE, newMultiplier: 1_021_486_444_855_206_408n, effectiveAt: 1_000n }

  it.each([
    ['a provider that has not split, after the split', 2000, 500, split, 1_000n, true],
    ['a provider that has split, after the split', 500, 500, split, 1_000n, false],
    ['a provider that has split and rose by half', 750, 500, split, 1_000n, false],
    ['just below the geometric mean', 999, 500, split, 1_000n, false],
    ['just above the geometric mean', 1001, 500, split, 1_000n, true],
    ['a provider that split early', 125, 500, split, 999n, true],
    ['a provider before a known split', 480, 500, split, 999n, false],
    ['an early split and a rise', 249, 500, split, 999n, true],
    ['a provider that has not consolidated, after it', 125, 500, reverse, 1_000n, true],
    ['a provider that has consolidated', 510, 500, reverse, 1_000n, false],
    ['a provider that consolidated early', 2000, 500, reverse, 999n, true],
    ['a dividend, whatever the market does', 460, 500, dividend, 1_000n, false],
    ['an unknown action and a small move', 590, 500, undefined, 1_000n, false],
    ['an unknown action and a step up', 625, 500, undefined, 1_000n, true],
    ['an unknown action and a step down', 400, 500, undefined, 1_000n, true],
  ])('%s: unsettled at %s after %s', (_, candidate, last, change, now, expected) => {
    expect(isUnsettledPrice(token(candidate), token(last), change, now)).toBe(expected)
  })
})
