import { expect, test } from 'vitest'
import { rowsToKeep } from '../../src/live/event-retention.ts'

const limits = { perAgentAndType: 10, total: 1_000 }
const share = (agent: number, rows: number, old = rows) => ({ agent, type: 'intent', rows, old })
/** Returns how many rows each agent keeps. */
const keptOf = (shares: readonly ReturnType<typeof share>[], total = limits.total) =>
  Object.fromEntries(rowsToKeep(shares, { ...limits, total }).map(({ agent, keep }) => [agent, keep]))

test('an agent loses only its own rows: those of a type beyond its limit that are older than two days', () => {
  expect(keptOf([share(1, 500, 400), share(2, 12), share(3, 10), share(4, 300, 0)])).toEqual({ 1: 100, 2: 10 })
})

test('young rows beyond the total are taken from whoever has most, and nobody with fewer loses any', () => {
  const crowd = [share(1, 600, 0), share(2, 500, 0), share(3, 40, 0), share(4, 1, 0)]
  expect(keptOf(crowd)).toEqual({ 1: 479, 2: 479 })
  expect(keptOf(crowd, 100)).toEqual({ 1: 33, 2: 33, 3: 33 })
  for (let agents = 1; agents <= 1_000; agents *= 10) {
    const flood = Array.from({ length: agents }, (_, index) => share(100 + index, 10_000 / agents, 0))
    const kept = rowsToKeep([...flood, share(1, 9, 0)], { ...limits, total: 5_000 })
    expect(kept.reduce((sum, { rows, keep }) => sum - rows + keep, 10_009)).toBeLessThanOrEqual(5_000)
    if (agents < 500) expect(kept.some(({ agent }) => agent === 1)).toBe(false)
  }
})
