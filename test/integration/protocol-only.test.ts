import { describe, expect, it } from 'vitest'
import { newTrader, openPosition, submit } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call } from '../support/surfaces.ts'

// The chain of these tests has contracts without trade policy, capital modes and promotion criteria.

describe('a deployment with the functions of the protocol alone', () => {
  it('quotes without a trade policy', async () => {
    const { agentId } = await newTrader()
    const input = { agentId, symbol: 'NVDA', usdcAmount: '0.5', maxSlippageBps: '5000' }
    const { body } = await call('getTradeIntentQuote', input)
    expect(body).toMatchObject({
      tradePolicy: null,
      allocation: { cap: '10000000000', effectiveCap: '10000000000', capitalMode: null },
    })
    expect(body.checks.filter(({ pass }: Body) => !pass)).toEqual([])
    const rules = body.checks.map(({ rule }: Body) => rule)
    for (const rule of ['entrySlippage', 'minTradeSize', 'spotPrice', 'maxDrawdown']) expect(rules).not.toContain(rule)
  })

  it('trades, and its reads have no capital mode', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100', maxSlippageBps: '5000' })
    for (const [submission, input] of [
      ['submitAddIntent', { usdcAmount: '0.5' }],
      ['submitExitLadderIntent', { exits: '-900:10000' }],
      ['submitReduceIntent', { exitBps: '5000' }],
    ] as const)
      expect(await submit(trader, submission, { positionId, ...input })).toMatchObject({ status: 201 })

    const { body: listed } = await call('listPositions', { agentId })
    expect(listed.positions).toMatchObject([{ positionId, capitalMode: null, priceStale: false }])
    const { body: risk } = await call('getRiskState', { agentId })
    expect(risk).toMatchObject({
      capitalMode: null,
      tradePolicy: null,
      promotionReadiness: { tradesCompleted: 3, alphaScore: null, meetsAlphaScore: null, eligible: false },
    })
    const { body: history } = await call('getTradeHistory', { agentId })
    expect(history.trades).toHaveLength(4)
    for (const trade of history.trades) expect(trade.capitalMode).toBeNull()
  })
})
