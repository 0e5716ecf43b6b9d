import { expect, test } from 'vitest'
import { newTrader, submit } from '../support/actors.ts'
import { call } from '../support/surfaces.ts'

type Window = { limitGas: number; leftGas: number }
type Budget = { budget: string; minute: Window; hour?: Window; day?: Window }

test('the quota shows every budget of an agent, less what its intents used, and the quote whether there is room', async () => {
  const trader = await newTrader()
  const { agentId } = trader
  const quotaOf = async () => (await call('getGasQuota', { agentId })).body.budgets as Budget[]
  const before = await quotaOf()
  expect(before.map(({ budget }) => budget)).toEqual(['agent', 'newAgents', 'lane', 'exitReserve', 'reserves'])
  expect(before[0]?.hour?.leftGas).toBe(before[0]?.hour?.limitGas)
  expect(before.flatMap(({ budget, day }) => (day ? [budget] : []))).toEqual(['newAgents', 'lane', 'reserves'])

  expect((await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '25' })).status).toBe(201)
  const after = await quotaOf()
  const used = (before[0]?.hour?.leftGas ?? 0) - (after[0]?.hour?.leftGas ?? 0)
  expect(used).toBeGreaterThan(100_000)
  expect(used).toBeLessThan(700_000)
  expect(after[4]).toEqual(before[4])

  const { body: quote } = await call('getTradeIntentQuote', { agentId, symbol: 'AAPL', usdcAmount: '25' })
  expect(quote.checks.find(({ rule }: { rule: string }) => rule === 'gasBudget')).toMatchObject({
    code: 'GAS_BUDGET_EXHAUSTED',
    pass: true,
    limit: `${before[0]?.minute.limitGas}`,
  })
})

test('an unknown agent has no quota', async () => {
  expect(await call('getGasQuota', { agentId: '999999' })).toMatchObject({
    status: 404,
    body: { code: 'AGENT_NOT_FOUND' },
  })
})
