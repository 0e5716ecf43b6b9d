import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { AgentStatus } from '../../src/protocol/enums.ts'
import {
  chain,
  FRONTIER,
  newTrader,
  openPosition,
  type Submission,
  signedIntent,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, type Input } from '../support/surfaces.ts'

// What the quote's checks pass the router accepts; what they fail it refuses, with the error of the first failing rule.

const CASES = 40
const quoteOf = {
  submitTradeIntent: 'getTradeIntentQuote',
  submitAddIntent: 'getAddIntentQuote',
  submitReduceIntent: 'getReduceIntentQuote',
  submitExitLadderIntent: 'getExitLadderIntentQuote',
} as const

/** Holds the checks of a quote against what becomes of the very intent that the quote answers. */
async function agree(trader: Trader, submission: Submission, input: Input) {
  const { body: quote } = await call(quoteOf[submission], { agentId: trader.agentId, ...input })
  const failing = quote.checks.find(({ pass }: Body) => !pass)
  const { status, body } = await call(submission, await signedIntent(trader, submission, input))
  const expected =
    failing === undefined ? 201 : ['REGISTRY_PAUSED', 'TRADING_PAUSED'].includes(failing.code) ? 503 : 400
  expect({ input, status, code: body.code, checks: quote.checks }).toMatchObject({
    status: expected,
    ...(failing && { code: failing.code }),
  })
  return { quote, status, body }
}

const amount = fc.oneof(
  fc.integer({ min: 1, max: 60_000_000 }).map(cents => `${cents / 10_000}`),
  fc.constantFrom('0.000001', '4000', '4000.000001', '5000', '5000.000001', '9999.999999', '10000', '10000.000001'),
)
const slippage = fc.constantFrom(0, 5, 100, 100, 100, 2_000, 10_000)
const trigger = fc.integer({ min: -9_000, max: 60_000 }).filter(value => value !== 0)
const ladder = fc
  .array(fc.tuple(trigger, fc.integer({ min: 1, max: 10_000 })), { minLength: 1, maxLength: 5 })
  .map(rules => {
    const sorted = [...rules].sort(([a], [b]) => Math.abs(a) - Math.abs(b))
    return sorted.map(([bps, share], index) => `${bps}:${index === sorted.length - 1 ? 10_000 : share}`).join(',')
  })
const symbol = fc.constantFrom('NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD', 'AAPL')
const seeded = { numRuns: CASES, seed: 20_261_121 }

describe('the checks of a quote', () => {
  let trader: Trader
  beforeAll(async () => {
    trader = await newTrader({ vault: FRONTIER })
  })

  it('of opens agree with the router on random intents', async () => {
    for (const [usdcAmount, maxSlippageBps, exits, token] of fc.sample(
      fc.tuple(amount, slippage, ladder, symbol),
      seeded,
    )) {
      const { status, body } = await agree(trader, 'submitTradeIntent', {
        symbol: token,
        usdcAmount,
        maxSlippageBps,
        exits: fc.sample(fc.constantFrom(exits, exits, '-800:10000'), { numRuns: 1, seed: usdcAmount.length })[0],
      })
      // Makes room for the next ones now and then.
      if (status === 201 && Number(body.positionId) % 2 === 0)
        await agree(trader, 'submitReduceIntent', { positionId: body.positionId, exitBps: 10_000 })
    }
  }, 300_000)

  it('of adds, reduces and ladders agree with the router on random intents', async () => {
    const mover = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(mover, { symbol: 'PLTR', usdcAmount: '100' })
    const cases = fc.sample(fc.tuple(amount, slippage, ladder, fc.integer({ min: 1, max: 3_000 })), seeded)
    for (const [usdcAmount, maxSlippageBps, exits, exitBps] of cases.slice(0, CASES / 2)) {
      await agree(mover, 'submitAddIntent', { positionId, usdcAmount, maxSlippageBps })
      await agree(mover, 'submitReduceIntent', { positionId, exitBps })
      await agree(mover, 'submitExitLadderIntent', { positionId, exits })
    }
  }, 300_000)

  it('name the most that passes: it is accepted, and one base unit more is refused', async () => {
    for (const vault of [FRONTIER, undefined]) {
      const fresh = await newTrader(vault ? { vault } : {})
      const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'NVDA' })
      const most = BigInt(body.maxUsdcAmount)
      const human = (value: bigint) => `${value / 1_000_000n}.${`${value % 1_000_000n}`.padStart(6, '0')}`
      const above = await agree(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: human(most + 1n) })
      expect(above.quote.bindingRule).toBe(body.bindingRule)
      expect((await agree(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: human(most) })).status).toBe(201)
    }
  })

  it('bound the amount by the depth of a thin pool', async () => {
    const fresh = await newTrader()
    const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'COST' })
    const most = Number(body.maxUsdcAmount) / 1e6
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThan(1_000)
    expect((await agree(fresh, 'submitTradeIntent', { symbol: 'COST', usdcAmount: `${most}` })).status).toBe(201)
  })

  it('hold while a pause or a suspension stands against the intent', async () => {
    const fresh = await newTrader()
    const intent = { symbol: 'NVDA', usdcAmount: '10' }
    const paused = async (pause: (paused: boolean) => Promise<void>) => {
      await pause(true)
      try {
        await agree(fresh, 'submitTradeIntent', intent)
      } finally {
        await pause(false)
      }
    }
    await paused(chain.pauseRegistry)
    await paused(value => chain.pauseTrading('genesis', value))
    await chain.setAgentStatus(BigInt(fresh.agentId), AgentStatus.Suspended)
    const { quote } = await agree(fresh, 'submitTradeIntent', intent)
    expect(quote).toMatchObject({ bindingRule: 'agentActive', maxUsdcAmount: '0' })
  })
})
