import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { chain, newTrader, openPosition, submit, type Trader } from '../actors.ts'
import { type Body, call, deployment } from '../surfaces.ts'

const stub = env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))

/** Runs the alarm now; where it runs already, waits for that look. */
async function look() {
  await stub.wake()
  if (!(await runDurableObjectAlarm(stub))) await stub.look()
}
const alarmOf = () => runInDurableObject(stub, (_, state) => state.storage.getAlarm())

/** Ends the loop, so that no later test's position is exited by it. */
afterAll(async () => {
  await stub.look()
  await runInDurableObject(stub, (_, state) => state.storage.deleteAlarm())
})
afterEach(() => vi.restoreAllMocks())

const position = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position
const automation = async ({ agentId }: Trader, positionId: string): Promise<Body> => {
  const { status, body } = await call('getPositionAutomation', { agentId, positionId })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const usd = (entryPriceUsdc: string, factor: number) => ((Number(entryPriceUsdc) / 1e6) * factor).toFixed(2)

async function bought(symbol: string, input = {}) {
  const trader = await newTrader()
  const positionId = await openPosition(trader, { symbol, usdcAmount: '100', ...input })
  const { entryPriceUsdc } = await position(trader, positionId)
  const moveTo = (factor: number) => chain.setPrice(symbol, usd(entryPriceUsdc, factor))
  return { trader, positionId, entryPriceUsdc, moveTo }
}

describe('the keeper', () => {
  it('is armed by an opened position, and fires its stop-loss when the price falls', async () => {
    const { trader, positionId, entryPriceUsdc, moveTo } = await bought('NVDA', { exits: '-800:10000,1500:10000' })
    await vi.waitFor(async () => expect(await alarmOf()).not.toBeNull())
    await look()
    const before = await automation(trader, positionId)
    expect(before).toMatchObject({
      symbol: 'NVDA',
      status: 'Open',
      keeperEnabled: true,
      pendingRules: [
        { ruleIndex: 0, triggerType: 'StopLoss', triggerBps: -800, exitBps: 10_000 },
        { ruleIndex: 1, triggerType: 'TakeProfit', triggerBps: 1500, exitBps: 10_000 },
      ],
      lastEvaluation: { priceUsd: before.price.priceUsd },
      lastOutcome: { outcome: 'notReached' },
    })
    const [stop, take] = before.pendingRules
    expect(Number(stop.triggerPriceUsd)).toBeCloseTo((Number(entryPriceUsdc) / 1e6) * 0.92, 4)
    expect(Number(take.triggerPriceUsd)).toBeCloseTo((Number(entryPriceUsdc) / 1e6) * 1.15, 4)
    expect(stop.distanceBps).toBeLessThan(-700)
    expect(take.distanceBps).toBeGreaterThan(1400)
    const { tokenAmount } = await position(trader, positionId)
    expect([stop.tokenAmount, take.tokenAmount]).toEqual([tokenAmount, tokenAmount])
    expect(Number(stop.minUsdcOut)).toBeCloseTo(92_000_000 * 0.99, -6)

    await moveTo(0.9)
    await look()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', nextRuleIndex: 1 })
    const after = await automation(trader, positionId)
    expect(after).toMatchObject({
      status: 'Closed',
      pendingRules: [],
      lastEvaluation: { priceUsd: String(Number(usd(entryPriceUsdc, 0.9))) },
      lastOutcome: { outcome: 'executed', ruleIndex: 0, usdcOut: expect.stringMatching(/^8\d{7}$/) },
    })
    const { body } = await call('getTransaction', { txHash: after.lastOutcome.transactionHash })
    expect(body).toMatchObject({ status: 'success', from: deployment.accounts.keeper.address })
    await moveTo(1)
  })

  it('fires the take-profit when the price rises, and of a ladder only what is met', async () => {
    const { trader, positionId, moveTo } = await bought('AAPL', { exits: '-600:5000,-900:10000,700:4000,1500:10000' })
    await moveTo(1.08)
    await look()
    expect(await position(trader, positionId)).toMatchObject({
      status: 'Open',
      nextRuleIndex: 1,
      exitRules: [{ triggerBps: 700 }, { triggerBps: -600 }, { triggerBps: -900 }, { triggerBps: 1500 }],
    })
    await look()
    const { lastOutcome, pendingRules } = await automation(trader, positionId)
    expect(lastOutcome).toMatchObject({ outcome: 'executed', ruleIndex: 0 })
    expect(pendingRules.map(({ ruleIndex, triggerBps }: Body) => [ruleIndex, triggerBps])).toEqual([
      [1, -600],
      [2, -900],
      [3, 1500],
    ])
    await moveTo(0.93)
    await look()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Open', nextRuleIndex: 2 })
    await moveTo(0.85)
    await look()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', nextRuleIndex: 3 })
    await moveTo(1)
  })

  it('waits while trading is paused, says so, and fires when it is not', async () => {
    const { trader, positionId, moveTo } = await bought('MSFT')
    await chain.pauseTrading('genesis', true)
    await moveTo(0.9)
    await look()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
      outcome: 'deferred',
      reason: 'tradingPaused',
    })
    expect((await automation(trader, positionId)).pendingRules[0]).toMatchObject({ distanceBps: 0 })
    await chain.pauseTrading('genesis', false)
    await look()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed' })
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    await moveTo(1)
  })

  it('waits while the price is stale, says so, and fires on the next fresh one', async () => {
    const { trader, positionId, moveTo } = await bought('GOOGL')
    await chain.increaseTime(90_000)
    await look()
    expect(await automation(trader, positionId)).toMatchObject({
      price: { stale: true },
      lastOutcome: { outcome: 'deferred', reason: 'priceStale' },
    })
    await chain.refreshPrices()
    await look()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'notReached' })
    await moveTo(0.9)
    await look()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    await moveTo(1)
  })
})
