import { type Order, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { expect, it } from 'vitest'
import type { AgentRecord } from '../../src/chain/agent-record.ts'
import { chargedAfterwards, gasSpendOf, paperPositionsIn } from '../../src/keeper/gas-of-agents.ts'

const agent = { owner: '0x00000000000000000000000000000000000000aa', createdAt: 1n } as unknown as AgentRecord
const block = { number: 1n, timestamp: 2n } as Parameters<typeof gasSpendOf>[1]['block']
const order = { agentId: 7n, side: OrderSide.Reduce, exitBps: 10_000, parts: 1 } as Order

it('a trade on paper is charged as measured: it reads the prices of all positions that are open', () => {
  const gasWith = (paperPositions: number) => gasSpendOf(order, { step: 'execute', agent, block, paperPositions }).gas
  expect(gasWith(150) - gasWith(0)).toBe(150 * 16_000)
  expect(chargedAfterwards(7n, 'exit', 150).gas - chargedAfterwards(7n, 'exit').gas).toBe(150 * 16_000)
})

it('a record that a part is due reads no positions', () => {
  const gasWith = (paperPositions: number) => gasSpendOf(order, { step: 'record', agent, block, paperPositions }).gas
  expect(gasWith(150)).toBe(gasWith(0))
})

it('positions on real capital add nothing, nor do those of a deployment without paper', () => {
  expect(paperPositionsIn({ openCount: 150n, capitalMode: 0 })).toBe(150)
  expect(paperPositionsIn({ openCount: 150n, capitalMode: 1 })).toBe(0)
  expect(paperPositionsIn({ openCount: 150n, capitalMode: undefined })).toBe(0)
})
