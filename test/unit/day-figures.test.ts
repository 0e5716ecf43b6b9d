import { dayFiguresAt } from '@agent-trading-service/protocol/day-figures'
import { expect, it } from 'vitest'

const figures = (usdc: bigint) => ({ turnoverUsdc: usdc, realizedPnlUsdc: -usdc })
const read = { day: 20_000n, today: figures(7n), before: figures(3n) }
const at = (days: bigint, seconds = 0n) => dayFiguresAt(read, (20_000n + days) * 86_400n + seconds)

it('a transaction on the day of the newest block finds the figures of that block', () => {
  expect(at(0n, 86_399n)).toEqual({ today: figures(7n), before: figures(3n) })
})

it('after midnight on a quiet chain, the day of the newest block is the day before', () => {
  expect(at(1n)).toEqual({ today: figures(0n), before: figures(7n) })
})

it('after two midnights without a block, neither day has figures', () => {
  expect(at(2n)).toEqual({ today: figures(0n), before: figures(0n) })
})
