import { partExitBps, partUsdcAmount } from '@agent-trading-service/protocol/order-rules'
import { expect, it } from 'vitest'

const MAX_PARTS = 100

it('each part of a reduction sells something and never more than is left, for every share in every number of parts', () => {
  for (let parts = 1; parts <= MAX_PARTS; parts++) {
    const shares = new Set<number>()
    for (let exitBps = parts; exitBps <= 10_000; exitBps++) {
      for (const part of new Set([1, Math.ceil(parts / 2), parts])) shares.add(partExitBps({ exitBps, parts }, part))
    }
    expect({ parts, least: Math.min(...shares), most: Math.max(...shares) }).toEqual({ parts, least: 1, most: 10_000 })
    expect(partExitBps({ exitBps: 10_000, parts }, parts)).toBe(10_000)
  }
})

it('the parts of a reduction together sell its share within 25 bps, also where a part is of few bps', () => {
  for (const [exitBps, parts] of [
    [75, 38],
    [199, 100],
    [282, 97],
    [655, 100],
    [2_500, 96],
    [9_999, 100],
  ] as const) {
    let left = 1
    for (let part = 1; part <= parts; part++) left *= 1 - partExitBps({ exitBps, parts }, part) / 10_000
    expect(Math.abs((1 - left) * 10_000 - exitBps)).toBeLessThan(25)
  }
})

it('the parts of a purchase spend exactly its amount', () => {
  for (let parts = 1; parts <= MAX_PARTS; parts++) {
    for (const usdcAmount of [100n, 101n, 999_999n, 1_000_000_007n]) {
      const spent = Array.from({ length: parts }, (_, index) => partUsdcAmount({ usdcAmount, parts }, index + 1))
      expect(spent.reduce((sum, usdc) => sum + usdc)).toBe(usdcAmount)
    }
  }
})
