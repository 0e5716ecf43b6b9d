import { env } from 'cloudflare:workers'
import { createPublicClient, http, parseEventLogs } from 'viem'
import { describe, expect, it } from 'vitest'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { chain, newTrader, openPosition, sign, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen } from '../support/event-stream.ts'
import { callTool } from '../support/mcp-surface.ts'
import { appWith, call, deployment, type Input, request } from '../support/surfaces.ts'

const node = createPublicClient({ transport: http(deployment.rpcUrl) })
const orderBook = { address: deployment.contracts.OrderBook as `0x${string}`, abi: orderBookAbi } as const

const quote = async ({ agentId }: Trader, input: Input): Promise<Body> => {
  const { status, body } = await call('getOrderQuote', { agentId, ...input })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}

/** Quotes and signs an order; returns its id and the body to post. */
async function signedOrder(trader: Trader, input: Input): Promise<{ orderId: string; body: Input }> {
  const { typedData, digest, body } = await quote(trader, input)
  const signature = await sign(trader.account, typedData)
  return { orderId: digest, body: { agentId: trader.agentId, ...body, signature } }
}

async function place(trader: Trader, input: Input): Promise<string> {
  const { orderId, body } = await signedOrder(trader, input)
  expect(await call('submitOrder', body)).toMatchObject({ status: 201, body: { orderId, state: 'open' } })
  return orderId
}

async function cancel(trader: Trader, orderId: string): Promise<void> {
  const { body } = await signedOrder(trader, { type: 'cancel', orderId })
  expect(await call('cancelOrder', { ...body, orderId })).toMatchObject({ status: 201, body: { state: 'cancelled' } })
}

const find = async ({ agentId }: Trader, orderId: string): Promise<Body> =>
  (await call('getOrder', { agentId, orderId })).body

const list = async ({ agentId }: Trader, input: Input = {}): Promise<Body[]> =>
  (await call('listOrders', { agentId, ...input })).body.orders

/** Executes a placed order as a keeper would, with the content of its event. */
async function execute({ transactionHash }: Body): Promise<void> {
  const { logs } = await node.getTransactionReceipt({ hash: transactionHash })
  const [placed] = parseEventLogs({ abi: orderBookAbi, logs, eventName: 'OrderPlaced' })
  if (placed === undefined) throw new Error('The transaction placed no order')
  const { order } = placed.args
  await chain.send(deployment.accounts.keeper, { ...orderBook, functionName: 'executeOrder', args: [order] })
}

it('a cancellation is refused if another one has ended its order, and repeats its own success', async () => {
  const trader = await newTrader()
  const orderId = await place(trader, { type: 'limit', symbol: 'NVDA', usdcAmount: '20', price: '1' })
  const [first, other] = [
    await signedOrder(trader, { type: 'cancel', orderId }),
    await signedOrder(trader, { type: 'cancel', orderId, deadline: `${(await node.getBlock()).timestamp + 200n}` }),
  ]
  const cancelled = await call('cancelOrder', { ...first.body, orderId })
  expect(cancelled).toMatchObject({ status: 201, body: { state: 'cancelled' } })
  expect(await call('cancelOrder', { ...other.body, orderId })).toMatchObject({
    status: 400,
    body: { code: 'INVALID_NONCE' },
  })
  expect((await call('cancelOrder', { ...first.body, orderId })).body).toEqual(cancelled.body)
})

describe('an order', () => {
  it('a limit entry waits for its price, buys with its ladder, and is filled', async () => {
    await chain.setPrice('NVDA', '120')
    const trader = await newTrader()
    const quoted = await quote(trader, {
      type: 'limit',
      symbol: 'NVDA',
      usdcAmount: '250',
      price: '118',
      stopLossPercent: '8',
    })
    expect(quoted).toMatchObject({
      order: { side: 'open', condition: 'atOrBelow', price: '118', usdcAmount: '250000000' },
      bindingRule: null,
      lossAtStopUsdc: expect.stringMatching(/^\d+$/),
    })
    expect(quoted.checks.every(({ pass }: Body) => pass)).toBe(true)
    expect(quoted.executionChecks.map(({ rule }: Body) => rule)).toContain('maxTradeSize')

    const { agentId } = trader
    const body = { agentId, ...quoted.body, note: 'Dip', signature: await sign(trader.account, quoted.typedData) }
    const placed = await call('submitOrder', body)
    expect(placed).toMatchObject({ status: 201, body: { agentId, orderId: quoted.digest, state: 'open' } })
    expect((await call('submitOrder', body)).body).toEqual(placed.body)

    expect(await list(trader, { state: 'open' })).toMatchObject([
      {
        orderId: quoted.digest,
        state: 'open',
        symbol: 'NVDA',
        triggerUsd: '118',
        distanceBps: -166,
        waitsFor: { code: 'CONDITION_NOT_MET', error: expect.stringContaining('waits for 118 USD') },
        partsDone: 0,
        endReason: null,
        note: 'Dip',
      },
    ])
    await chain.increaseTime(2) // an order takes only prices from after its placement
    await chain.setPrice('NVDA', '119')
    expect(await find(trader, quoted.digest)).toMatchObject({ waitsFor: { code: 'CONDITION_NOT_MET' } })
    await chain.setPrice('NVDA', '117.5')
    await execute(placed.body)
    const filled = await find(trader, quoted.digest)
    expect(filled).toMatchObject({ state: 'filled', partsDone: 1, triggerUsd: null, executions: [{ part: 1 }] })
    const { position } = (await call('getPosition', { agentId, positionId: filled.positionId })).body
    expect(position).toMatchObject({ symbol: 'NVDA', usdcCostBasis: '250000000', pendingRules: [{ triggerBps: -800 }] })
    expect(await list(trader, { state: 'open' })).toEqual([])
    expect(await list(trader, { state: 'past' })).toMatchObject([{ orderId: quoted.digest }])
    const { trades } = (await call('getTradeHistory', { agentId })).body
    expect(trades[0]).toMatchObject({ type: 'PositionOpened', source: 'order', note: 'Dip' })
  })

  it('a trailing stop shows its peak and trigger, and a cancelled one never executes', async () => {
    await chain.setPrice('MSFT', '400')
    const trader = await newTrader()
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '200' })
    const orderId = await place(trader, { type: 'trailingStop', positionId, trailPercent: '5' })
    const order = await find(trader, orderId)
    expect(order).toMatchObject({
      side: 'reduce',
      positionId,
      exitBps: 10000,
      trailBps: 500,
      peakUsd: '400',
      triggerUsd: '380',
      distanceBps: -500,
    })
    await cancel(trader, orderId)
    expect(await find(trader, orderId)).toMatchObject({ state: 'cancelled', endReason: 'cancelled', triggerUsd: null })
    await chain.increaseTime(2)
    await chain.setPrice('MSFT', '370')
    await expect(execute(order)).rejects.toThrow(/OrderNotOpen/)
    await chain.setPrice('MSFT', '400')
  })

  it('a purchase in parts buys one part per interval and says when the next is due', async () => {
    const trader = await newTrader()
    const orderId = await place(trader, {
      type: 'twap',
      symbol: 'AMZN',
      usdcAmount: '100.000001',
      parts: '2',
      interval: '60',
      exits: '-800:10000',
    })
    const order = await find(trader, orderId)
    await execute(order)
    expect(await find(trader, orderId)).toMatchObject({
      state: 'partlyFilled',
      partsDone: 1,
      waitsFor: { code: 'ORDER_NOT_DUE' },
    })
    await expect(execute(order)).rejects.toThrow(/OrderNotDue/)
  })

  it('an order that only its position could execute fails with the position', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'GOOGL', usdcAmount: '200' })
    const orderId = await place(trader, { type: 'takeProfit', positionId, price: '900' })
    const { body: reduction } = await call('getReduceIntentQuote', { agentId, positionId, exitBps: '10000' })
    const signature = await sign(trader.account, reduction.typedData)
    const { body: closed } = await call('submitReduceIntent', { agentId, ...reduction.body, signature })
    const { timestamp } = await node.getBlock({ blockNumber: BigInt(closed.blockNumber) })
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const endedAt = `${timestamp}`
    expect(await find(trader, orderId)).toMatchObject({ state: 'failed', endReason: 'positionClosed', endedAt })
    expect(await list(trader, { state: 'past' })).toMatchObject([{ orderId }])
  })

  it('an order fails with the position that its first part opened', async () => {
    const trader = await newTrader()
    const input = { type: 'twap', symbol: 'META', usdcAmount: '100', parts: '2', interval: '60', exits: '-800:10000' }
    const orderId = await place(trader, input)
    await execute(await find(trader, orderId))
    const { positionId } = await find(trader, orderId)
    expect(await list(trader, { state: 'past' })).toEqual([])
    expect((await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })).status).toBe(201)
    expect(await find(trader, orderId)).toMatchObject({ state: 'failed', endReason: 'positionClosed', partsDone: 1 })
    expect(await list(trader, { state: 'past' })).toMatchObject([{ orderId }])
  })

  it('a newer order with the same key replaces it', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { symbol: 'TSLA', usdcAmount: '200' })
    const at = (await node.getBlock()).timestamp
    const first = await place(trader, { type: 'timeExit', positionId, validAfter: `${at + 600n}`, key: '7' })
    const second = await place(trader, { type: 'timeExit', positionId, validAfter: `${at + 1200n}`, key: '7' })
    expect(await list(trader, { state: 'open' })).toMatchObject([{ orderId: second, key: '7' }])
    expect(await find(trader, first)).toMatchObject({ state: 'cancelled', endReason: 'replaced' })
  })
})

describe('the orders of an agent', () => {
  it('an agent has at most 20 open orders, and cancelling one makes room', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const input = { type: 'limit', symbol: 'NVDA', usdcAmount: '10', price: '50', exits: '-800:10000' }
    const placed: string[] = []
    for (let count = 0; count < 20; count++) placed.push(await place(trader, input))
    const { checks, bindingRule } = await quote(trader, input)
    expect(bindingRule).toBe('openOrders')
    expect(checks).toContainEqual(expect.objectContaining({ code: 'TOO_MANY_OPEN_ORDERS', limit: '20', used: '20' }))
    const { body } = await signedOrder(trader, input)
    expect(await call('submitOrder', body)).toMatchObject({ status: 400, body: { code: 'TOO_MANY_OPEN_ORDERS' } })

    const firstPage = await call('listOrders', { agentId, state: 'open', limit: '15' })
    const { nextCursor } = firstPage.body
    const secondPage = await call('listOrders', { agentId, state: 'open', limit: '15', cursor: nextCursor })
    const shown = [...firstPage.body.orders, ...secondPage.body.orders].map(({ orderId }: Body) => orderId)
    expect(shown).toEqual(placed.toReversed())

    await cancel(trader, placed[0] ?? '')
    await place(trader, input)
    const again = await signedOrder(trader, { type: 'cancel', orderId: placed[1] ?? '' })
    expect(await call('cancelOrder', { ...again.body, orderId: placed[0] })).toMatchObject({ status: 400 })
  })

  it('an order that has ended cannot be cancelled', async () => {
    const trader = await newTrader()
    const orderId = await place(trader, {
      type: 'limit',
      symbol: 'NVDA',
      usdcAmount: '10',
      price: '50',
      exits: '-800:10000',
    })
    await cancel(trader, orderId)
    const { bindingRule } = await quote(trader, { type: 'cancel', orderId })
    expect(bindingRule).toBe('orderOpen')
    const { body } = await signedOrder(trader, { type: 'cancel', orderId })
    expect(await call('cancelOrder', { ...body, orderId })).toMatchObject({
      status: 400,
      body: { code: 'ORDER_NOT_OPEN' },
    })
  })
})

describe('the events of an order', () => {
  it('a stream tells when an order is placed, executed and cancelled, each with its id', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const stream = listen(await request(`/agents/${agentId}/events`))
    try {
      await stream.open()
      const input = { type: 'twap', symbol: 'AMZN', usdcAmount: '100', parts: '2', interval: '60', exits: '-800:10000' }
      const orderId = await place(trader, input)
      const placed = await stream.next('order')
      expect(placed.data).toMatchObject({ agentId, orderId, type: 'OrderPlaced', symbol: 'AMZN', parts: 2 })
      await execute(await find(trader, orderId))
      expect((await stream.next('order')).data).toMatchObject({ orderId, type: 'OrderExecuted', part: 1 })
      await cancel(trader, orderId)
      expect((await stream.next('order')).data).toMatchObject({ orderId, type: 'OrderEnded', reason: 'cancelled' })
    } finally {
      await stream.leave()
    }
  })
})

describe('a quote of an order', () => {
  it('names what is missing, and refuses what an order of its type has no use for', async () => {
    const trader = await newTrader()
    const { warnings, order, typedData } = await quote(trader, { type: 'limit', symbol: 'NVDA', usdcAmount: '250' })
    expect({ order, typedData }).toEqual({ order: null })
    expect(warnings).toContainEqual(expect.stringContaining('with price as well'))
    const { agentId } = trader
    const refused = await call('getOrderQuote', { agentId, type: 'limit', symbol: 'NVDA', trailPercent: '5' })
    expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    expect(refused.body.error).toContain('limit has no trail')
    const twice = { agentId, type: 'trailingStop', positionId: '1', trailBps: '500', trailPercent: '5' }
    expect(await call('getOrderQuote', twice)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })

  it('refuses a field that the order book would refuse, by its name', async () => {
    const { agentId } = await newTrader()
    const input = { type: 'twap', symbol: 'NVDA', usdcAmount: '250', parts: '2', interval: '5', exits: '-800:10000' }
    const { status, body } = await call('getOrderQuote', { agentId, ...input })
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'INVALID_ORDER' })
    expect(body.error).toContain('interval of the order is 5')
  })

  it('refuses a stop above the price, and says what the price is and what to place instead', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '250' })
    const { checks, typedData, body } = await quote(trader, { type: 'stop', positionId, price: '9000' })
    const remedy = expect.stringMatching(/below the present one.*takeProfit/)
    expect(checks.find(({ rule }: Body) => rule === 'stopDistance')).toMatchObject({
      pass: false,
      code: 'STOP_ABOVE_PRICE',
      used: '900000000000',
      remedy,
    })
    const signature = await sign(trader.account, typedData)
    expect(await call('submitOrder', { agentId: trader.agentId, ...body, signature })).toMatchObject({
      status: 400,
      body: {
        code: 'STOP_ABOVE_PRICE',
        error: expect.stringContaining('A stop at 9000 USD would sell at once'),
        remedy,
      },
    })
  })

  it('checks the next part with the slippage that a keeper has at first, and not the signed one', async () => {
    const trader = await newTrader()
    const limitOf = async (input: Record<string, string>) => {
      const { executionChecks } = await quote(trader, input)
      return BigInt(executionChecks.find(({ rule }: Body) => rule === 'slippage').limit)
    }
    const entry = { type: 'limit', symbol: 'NVDA', usdcAmount: '250', price: '100' }
    const tight = await limitOf({ ...entry, maxSlippageBps: '50' })
    expect(await limitOf({ ...entry, maxSlippageBps: '100' })).toBe(tight)
    expect(await limitOf({ ...entry, maxSlippageBps: '20' })).toBeGreaterThan(tight)

    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '250' })
    const sale = await quote(trader, { type: 'takeProfit', positionId, price: '10000' })
    const { limit } = sale.executionChecks.find(({ rule }: Body) => rule === 'slippage')
    const { body } = await call('getPosition', { agentId: trader.agentId, positionId })
    const [{ priceUsd }] = [(await call('getPrices', {})).body.prices.NVDA]
    const worth = (Number(body.position.tokenAmount) / 1e18) * Number(priceUsd) * 1e6
    expect(Number(limit) / worth).toBeCloseTo(0.995, 4)
  })

  it('refuses a trailing stop within the cost of buying and selling, with the distance that would pass', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '250' })
    const input = { type: 'trailingStop', positionId, trailBps: '2' }
    const { checks, typedData, body, digest } = await quote(trader, input)
    const check = checks.find(({ rule }: Body) => rule === 'stopDistance')
    expect(check).toMatchObject({ pass: false, code: 'STOP_WITHIN_COSTS', used: '2' })
    const signature = await sign(trader.account, typedData)
    const { agentId } = trader
    const refused = await call('submitOrder', { agentId, ...body, signature })
    expect(refused).toMatchObject({ status: 400, body: { code: 'STOP_WITHIN_COSTS' } })
    expect((await call('getOrder', { agentId, orderId: digest })).body.code).toBe('ORDER_NOT_FOUND')
    const passing = `${Number(check.limit)}`
    expect((await quote(trader, { ...input, trailBps: passing })).bindingRule).toBeNull()
  })

  it.each([
    ['a purchase in parts', { type: 'twap', usdcAmount: '5', parts: '10', interval: '60' }],
    ['a limit entry', { type: 'limit', usdcAmount: '0.5', price: '150' }],
  ])('refuses %s below the smallest trade, which could never execute', async (_, input) => {
    const trader = await newTrader()
    const given = { ...input, symbol: 'NVDA', stopLossPercent: '8' }
    const { checks, bindingRule, typedData, body } = await quote(trader, given)
    expect(bindingRule).toBe('minTradeSize')
    expect(checks).toContainEqual(
      expect.objectContaining({ code: 'TRADE_TOO_SMALL', pass: false, limit: '1000000', after: '500000' }),
    )
    const { agentId } = trader
    const brief = await callTool('svc_get_order_quote', { agentId, ...given }, appWith({}))
    expect(brief.body).toMatchObject({ passes: false, failedChecks: ['TRADE_TOO_SMALL'] })
    const signature = await sign(trader.account, typedData)
    expect(await call('submitOrder', { agentId, ...body, signature })).toMatchObject({
      status: 400,
      body: { code: 'TRADE_TOO_SMALL', details: { usdcAmount: '500000', minUsdcAmount: '1000000' } },
    })
  })

  it.each([
    ['in parts', { type: 'twap', exitBps: '10000', parts: '10', interval: '60' }],
    ['of a share', { type: 'stop', price: '150', exitBps: '1' }],
  ])(
    'warns of a sale %s below the smallest trade, which a higher price or a larger position may execute',
    async (_, input) => {
      const trader = await newTrader()
      await chain.setPrice('NVDA', '160')
      const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '3' })
      const given = { ...input, positionId }
      const { bindingRule, warnings, body } = await quote(trader, given)
      expect({ bindingRule, body }).toMatchObject({ bindingRule: null, body: { side: 'reduce' } })
      expect(warnings).toContainEqual(expect.stringContaining('it would wait: the check minTradeSize fails'))
      const brief = await callTool('svc_get_order_quote', { agentId: trader.agentId, ...given }, appWith({}))
      expect(brief.body).toMatchObject({ passes: true, failedExecutionChecks: ['TRADE_TOO_SMALL'] })
    },
  )
})
