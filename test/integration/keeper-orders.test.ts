import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { OrderCondition, OrderEnd } from '@agent-trading-service/protocol/order-typed-data'
import { type Hex, toFunctionSelector } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { findOrderReport } from '../../src/keeper/position-report.ts'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import { node } from '../support/history-oracle.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { chainTime, executeOrder, orderBook, type Placed, placeOrder } from '../support/orders.ts'
import { postPrice } from '../support/replaced-contracts.ts'
import { whilePoolsStay } from '../support/still-pools.ts'
import { call, deployment } from '../support/surfaces.ts'

// The keeper executes orders that it learns of from the index. Any account placed them: the service took no part.

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const disarm = () => disarmKeeper(keeper())
afterAll(disarm)
afterEach(() => vi.restoreAllMocks())

const report = async ({ orderId }: Placed): Promise<ReturnType<typeof findOrderReport>> =>
  (await keeper().findOrders([orderId]))[0]

/** Places an order, and waits until the keeper has heard of it from the index. */
async function place(trader: Trader, fields: Parameters<typeof placeOrder>[1]): Promise<Placed> {
  const placed = await placeOrder(trader, fields)
  await indexer().catchUp()
  await vi.waitFor(async () => expect(await report(placed)).toBeDefined(), { timeout: 120_000 })
  await disarm()
  await chain.increaseTime(2) // a price of the second in which it was placed does not count
  return placed
}

/** Posts a price while the keeper is stopped, and runs a cycle. */
async function post(symbol: string, usd: number) {
  await disarm()
  await chain.setPrice(symbol, usd.toFixed(2))
  await runCycle(keeper())
}

const logsOf = (eventName: 'OrderExecuted' | 'OrderEnded' | 'OrderDue' | 'OrderPeakRaised', { orderId }: Placed) =>
  node.getContractEvents({ ...orderBook, eventName, args: { orderId }, fromBlock: 0n, strict: true })
const partsOf = async (placed: Placed) => (await logsOf('OrderExecuted', placed)).length
const reasonsOf = async (placed: Placed) =>
  (await logsOf('OrderEnded', placed)).map(({ args }) => (args as { reason: number }).reason)

const priceOf = async (symbol: string): Promise<number> => {
  const { body } = await call('getPrices', {})
  return Number(body.prices[symbol].priceUsd)
}
const inCents = (usd: number) => BigInt(Math.round(usd * 100)) * 1_000_000n

/** Opens a position with a stop-loss that no test reaches. */
async function holder(symbol: string) {
  const trader = await newTrader()
  const positionId = BigInt(await openPosition(trader, { symbol, usdcAmount: '100', exits: '-2000:10000' }))
  return { trader, positionId, start: await priceOf(symbol) }
}
const position = async ({ agentId }: Trader, positionId: bigint) =>
  (await call('getPosition', { agentId, positionId: `${positionId}` })).body.position

beforeAll(() => runCycle(keeper()))

describe('an entry', () => {
  it('at a limit buys once the price is at or below it, with its exit ladder', async () => {
    const trader = await newTrader()
    const start = await priceOf('NVDA')
    const placed = await place(trader, {
      symbol: 'NVDA',
      condition: OrderCondition.AtOrBelow,
      price: inCents(start * 0.95),
    })
    await post('NVDA', start * 0.96)
    expect(await partsOf(placed)).toBe(0)
    expect(await report(placed)).toMatchObject({ trigger: placed.order.price, lastRefusal: null, isInFlight: false })
    await post('NVDA', start * 0.94)
    expect(await partsOf(placed)).toBe(1)
    expect(await report(placed)).toBeUndefined()
    const { body } = await call('listPositions', { agentId: trader.agentId })
    expect(body.positions).toMatchObject([{ symbol: 'NVDA', status: 'Open' }])
    await post('NVDA', start)
  })

  it('above the price buys on a breakout', async () => {
    const start = await priceOf('NVDA')
    const placed = await place(await newTrader(), {
      condition: OrderCondition.AtOrAbove,
      price: inCents(start * 1.02),
    })
    await post('NVDA', start * 1.01)
    expect(await partsOf(placed)).toBe(0)
    await post('NVDA', start * 1.03)
    expect(await partsOf(placed)).toBe(1)
    await post('NVDA', start)
  })

  it('in parts buys each part at its time, and never two at once', async () => {
    const trader = await newTrader()
    const placed = await place(trader, { symbol: 'COST', parts: 3, interval: 60n })
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(1)
    await runCycle(keeper())
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(1)
    expect(await report(placed)).toMatchObject({ nextTryAt: expect.any(BigInt), lastRefusal: null })
    await chain.increaseTime(130) // two intervals: a missed part is late and not doubled
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(2)
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(2)
    await chain.increaseTime(60)
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(3)
    expect(await report(placed)).toBeUndefined()
  })
})

describe('a stop', () => {
  it('above the entry protects a gain', async () => {
    const { trader, positionId, start } = await holder('MSFT')
    await post('MSFT', start * 1.1)
    const placed = await place(trader, {
      symbol: 'MSFT',
      positionId,
      condition: OrderCondition.AtOrBelow,
      price: inCents(start * 1.05),
    })
    await post('MSFT', start * 1.06)
    expect(await partsOf(placed)).toBe(0)
    await post('MSFT', start * 1.04)
    expect(await partsOf(placed)).toBe(1)
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', closedBy: 'order' })
    await post('MSFT', start)
  })

  it('that trails rises with the price, once per post, and fires at its distance below the peak', async () => {
    const { trader, positionId, start } = await holder('GOOGL')
    const placed = await place(trader, {
      symbol: 'GOOGL',
      positionId,
      condition: OrderCondition.Trailing,
      trailBps: 500,
    })
    await runCycle(keeper())
    await post('GOOGL', start * 1.1)
    await runCycle(keeper())
    await runCycle(keeper())
    expect(await logsOf('OrderPeakRaised', placed)).toHaveLength(1)
    expect((await report(placed))?.trigger).toBe((inCents(start * 1.1) * 9_500n) / 10_000n)
    await post('GOOGL', start * 1.1005) // moves the trigger by less than 10 bps
    expect(await logsOf('OrderPeakRaised', placed)).toHaveLength(1)
    await post('GOOGL', start * 1.06)
    expect(await partsOf(placed)).toBe(0)
    await post('GOOGL', start * 1.04)
    expect(await partsOf(placed)).toBe(1)
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed' })
    await post('GOOGL', start)
  })

  it('that trails rises before its time, and by the hand of another keeper', async () => {
    const { trader, positionId, start } = await holder('META')
    const placed = await place(trader, {
      symbol: 'META',
      positionId,
      condition: OrderCondition.Trailing,
      trailBps: 500,
      validAfter: (await chainTime()) + 3_600n,
    })
    await runCycle(keeper())
    await post('META', start * 1.05)
    expect(await logsOf('OrderPeakRaised', placed)).toHaveLength(1)

    await disarm()
    await chain.setPrice('META', (start * 1.1).toFixed(2))
    await chain.send(deployment.accounts.payer, { ...orderBook, functionName: 'raisePeaks', args: [[placed.order]] })
    await indexer().catchUp()
    const isUnchecked = () =>
      runInDurableObject(keeper(), (_, { storage }) =>
        Number(storage.sql.exec('SELECT is_unchecked FROM open_order WHERE id = ?', placed.orderId).one().is_unchecked),
      )
    await vi.waitFor(async () => expect(await isUnchecked()).toBe(1), { timeout: 120_000 })
    await runCycle(keeper())
    expect((await report(placed))?.trigger).toBe((inCents(start * 1.1) * 9_500n) / 10_000n)
    expect(await logsOf('OrderPeakRaised', placed)).toHaveLength(2)
    await post('META', start)
    expect(await partsOf(placed)).toBe(0)
  })

  it('costs a cycle no second read of the prices', async () => {
    const { trader, positionId } = await holder('AAPL')
    await place(trader, { symbol: 'AAPL', positionId, validAfter: (await chainTime()) + 3_600n })
    await runCycle(keeper())
    const selectorOf = (signature: string) => toFunctionSelector(signature).slice(2)
    const price = selectorOf('latestRoundData(address)')
    // Only the keeper reads these with prices.
    const others = ['executeExits(uint256[])', 'orderBook()'].map(selectorOf)
    const original = globalThis.fetch
    let reads = 0
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      const body = await request.clone().text()
      if (body.includes(price) && others.some(selector => body.includes(selector))) reads++
      return original(request)
    })
    await runCycle(keeper())
    expect(reads).toBe(1)
  })
})

describe('an order that cannot execute', () => {
  it('is taken off the chain once it has expired, and when its position is closed', async () => {
    const { trader, positionId } = await holder('AMZN')
    const expiring = await place(trader, {
      symbol: 'AMZN',
      positionId,
      validUntil: (await chainTime()) + 300n,
      validAfter: (await chainTime()) + 290n,
    })
    const orphan = await place(trader, { symbol: 'AMZN', positionId, condition: OrderCondition.AtOrBelow, price: 1n })
    const { status } = await submit(trader, 'submitReduceIntent', { positionId: `${positionId}`, exitBps: '10000' })
    expect(status).toBe(201)
    await chain.increaseTime(301)
    await indexer().catchUp()
    await vi.waitFor(
      async () => {
        await runCycle(keeper())
        await chain.increaseTime(61)
        expect([await reasonsOf(expiring), await reasonsOf(orphan)]).toEqual([
          [expect.any(Number)],
          [OrderEnd.PositionClosed],
        ])
      },
      { timeout: 60_000 },
    )
    expect([await report(expiring), await report(orphan)]).toEqual([undefined, undefined])
  })

  it('is reported with its reason, backs off, and executes once nothing prevents it', async () => {
    const { trader, positionId } = await holder('AAPL')
    await chain.pauseTrading('genesis', true)
    const placed = await place(trader, { symbol: 'AAPL', positionId })
    await runCycle(keeper())
    const refused = await report(placed)
    expect(refused).toMatchObject({
      lastRefusal: { code: 'TRADING_PAUSED', message: expect.any(String), at: expect.any(String) },
      nextTryAt: expect.any(BigInt),
      isInFlight: false,
    })
    await runCycle(keeper())
    expect((await report(placed))?.nextTryAt).toBe(refused?.nextTryAt)
    await chain.pauseTrading('genesis', false)
    await chain.increaseTime(120)
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(1)
  })

  it('is recorded as due if the pool fills it too far from the price, and executes as the slippage of keepers widens', async () => {
    const validAfter = (await chainTime()) + 600n
    const placed = await place(await newTrader(), { symbol: 'AMZN', validAfter })
    const start = await priceOf('AMZN')
    await chain.increaseTime(700)
    await chain.setPrice('AMZN', (start * 1.008).toFixed(2))
    await whilePoolsStay(async () => {
      await postPrice(deployment.tokens.AMZN as Hex, inCents(start))
      await runCycle(keeper())
      expect([await report(placed), await partsOf(placed), await logsOf('OrderDue', placed)]).toEqual([
        expect.objectContaining({ lastRefusal: expect.objectContaining({ code: 'SLIPPAGE_EXCEEDED' }) }),
        0,
        [expect.anything()],
      ])
      await chain.increaseTime(5)
      await runCycle(keeper())
      expect(await partsOf(placed)).toBe(1)
    })
    await post('AMZN', start)
  })
})

describe('a crash', () => {
  /** Places an order of two parts, whose first one has become due since the keeper's last cycle. */
  async function dueInParts(trader: Trader, positionId: bigint): Promise<Placed> {
    const validAfter = (await chainTime()) + 600n
    const parts = { exitBps: 5_000, parts: 2, interval: 60n, validAfter }
    const placed = await place(trader, { symbol: 'TSLA', positionId, ...parts })
    expect(await partsOf(placed)).toBe(0)
    await chain.increaseTime(700)
    return placed
  }

  it('before the lane has a response loses no part and repeats none', async () => {
    const { trader, positionId } = await holder('TSLA')
    const placed = await dueInParts(trader, positionId)
    const original = globalThis.fetch
    let cut = false
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      const response = original(request.clone())
      if (!(await request.text()).includes('eth_sendRawTransaction')) return response
      cut = true
      return new Promise(() => {})
    })
    void keeper()
      .runCycle()
      .catch(() => {})
    await vi.waitFor(() => expect(cut).toBe(true), { timeout: 120_000 })
    expect(await report(placed)).toMatchObject({ isInFlight: true })
    await abortAllDurableObjects()
    vi.restoreAllMocks()

    await runCycle(keeper())
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(1)
    expect(await report(placed)).toMatchObject({ isInFlight: false, lastRefusal: null })
  })

  it('and an outsider who executes the same part cost no part', async () => {
    const { trader, positionId } = await holder('TSLA')
    const placed = await dueInParts(trader, positionId)
    const outsider = executeOrder(placed).catch(() => undefined)
    await runCycle(keeper())
    await outsider
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(1)
    await chain.increaseTime(70)
    await runCycle(keeper())
    await runCycle(keeper())
    expect(await partsOf(placed)).toBe(2)
  })
})

describe('the gas of orders', () => {
  it('counts in the budgets of their agent: without room, purchases wait and say so, and sales use its reserve', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const lane = env.EXECUTOR_LANE.getByName(privateKeyToAddress(env.EXECUTOR_PRIVATE_KEY as Hex))
    const use = { kind: 'open', by: { as: 'keeper', agent: { id: BigInt(agentId) } } } as const
    // A full budget has room for anything.
    expect(await lane.spendGas([{ use, gas: 1_000_000_000 }])).toEqual([undefined])

    const purchase = await place(trader, { symbol: 'AAPL', parts: 2, interval: 60n })
    await runCycle(keeper())
    expect(await partsOf(purchase)).toBe(0)
    expect(await report(purchase)).toMatchObject({ lastRefusal: { code: 'GAS_BUDGET_EXHAUSTED' }, isInFlight: false })

    await executeOrder(purchase)
    const { body } = await call('listPositions', { agentId })
    const positionId = BigInt(body.positions[0].positionId)
    const sale = await place(trader, { positionId, symbol: 'AAPL', exitBps: 5_000 })
    await runCycle(keeper())
    expect(await partsOf(sale)).toBe(1)
    expect(await partsOf(purchase)).toBe(1)
  })
})
