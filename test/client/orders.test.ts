import { expect, it } from 'vitest'
import { type OrderRequest, ValidationError } from '../../packages/client/src/index.ts'
import { startProxy } from './proxy.ts'
import { clientOf, LADDER, newAccount, newAgent, serviceUrl } from './support.ts'

const FAR_BELOW = '1.5'
const LIMIT: OrderRequest = {
  type: 'limit',
  symbol: 'NVDA',
  usdcAmount: '25.5',
  price: FAR_BELOW,
  stopLossPercent: '8',
  note: 'Dip',
}

it('an agent places a limit entry, finds it waiting, and cancels it', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  const client = clientOf(account)
  const { orders } = client.agent(agentId)
  const now = await client.now()
  const { orderId, state } = await orders.place(LIMIT)
  expect(state).toBe('open')
  const order = await client.getOrder({ agentId, orderId })
  expect(order).toMatchObject({
    state: 'open',
    side: 'open',
    symbol: 'NVDA',
    usdcAmount: '25500000',
    condition: 'atOrBelow',
    price: FAR_BELOW,
    maxSlippageBps: 100,
    exits: [{ triggerBps: -800, exitBps: 10_000 }],
  })
  // A purchase waits for 90 days.
  expect(Math.abs(Number(order.validUntil) - now - 90 * 86_400)).toBeLessThan(120)
  const cancelled = await orders.cancel({ orderId })
  expect(cancelled).toMatchObject({ agentId, orderId, state: 'cancelled', transactionHash: expect.any(String) })
  expect((await client.listOrders({ agentId, state: 'open' })).orders).toEqual([])
  expect((await client.listOrders({ agentId, state: 'past' })).orders).toMatchObject([
    { orderId, endReason: 'cancelled' },
  ])
})

it('orders of a position sell it, add to it and replace each other, between trades of the agent', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  const client = clientOf(account)
  const agent = client.agent(agentId)
  const { positionId } = await agent.open({ symbol: 'MSFT', usdcAmount: '100', exits: LADDER })
  const at = BigInt(await client.now())
  const key = '7'
  const [trailing, first, , second, parts] = await Promise.all([
    agent.orders.place({ type: 'trailingStop', positionId, trailPercent: '5' }),
    agent.orders.place({ type: 'timeExit', positionId, validAfter: at + 3_600n, key }),
    agent.reduce({ positionId, exitBps: 1_000 }),
    agent.orders.place({ type: 'timeExit', positionId, validAfter: at + 7_200n, key }),
    agent.orders.place({
      type: 'twap',
      positionId,
      usdcAmount: '20',
      parts: 2,
      interval: '3600',
      validAfter: at + 60n,
    }),
  ])
  const { orders } = await client.listOrders({ agentId, state: 'open' })
  expect(new Set(orders.map(({ orderId }) => orderId))).toEqual(
    new Set([trailing.orderId, second.orderId, parts.orderId]),
  )
  const found = (orderId: string) => orders.find(order => order.orderId === orderId)
  const noEnd = `${2 ** 40 - 1}`
  expect(found(trailing.orderId)).toMatchObject({ side: 'reduce', trailBps: 500, exitBps: 10_000, validUntil: noEnd })
  expect(found(parts.orderId)).toMatchObject({ side: 'add', positionId, parts: 2, interval: '3600' })
  expect(await client.getOrder({ agentId, orderId: first.orderId })).toMatchObject({ endReason: 'replaced' })
})

it('an order whose response is lost is found by its digest, as is its cancellation', async () => {
  const account = newAccount()
  const agentId = await newAgent(account)
  const proxy = await startProxy(serviceUrl)
  proxy.set({ onResponse: ({ method }) => (method === 'POST' ? 'reset' : undefined) })
  const { orders } = clientOf(account, { baseUrl: proxy.url, retryBudgetMs: 1_000 }).agent(agentId)
  const prepared = await orders.preparePlace(LIMIT)
  const placed = await prepared.submit(await prepared.sign())
  expect(placed).toMatchObject({ agentId, orderId: prepared.digest, state: 'open' })
  const { orderId } = placed
  expect(await orders.cancel({ orderId })).toMatchObject({ agentId, orderId, state: 'cancelled' })
  await proxy.stop()
})

it('an order that says too little or too much is refused before the service is asked', async () => {
  const { orders } = clientOf(newAccount(), { baseUrl: 'http://127.0.0.1:9', rpcUrl: undefined } as never).agent('1')
  for (const wrong of [
    { type: 'limit', symbol: 'NVDA', usdcAmount: '10', price: '1.123456789', stopLossPercent: '8' },
    { type: 'limit', symbol: 'NVDA', usdcAmount: '10', stopLossPercent: '8' },
    { type: 'limit', symbol: 'NVDA', price: '1', stopLossPercent: '8' },
    { type: 'limit', symbol: 'NVDA', usdcAmount: '10', price: '1' },
    { type: 'stop', positionId: '3', usdcAmount: '10', price: '1' },
    { type: 'trailingStop', positionId: '3' },
    { type: 'timeExit', positionId: '3' },
    { type: 'twap', positionId: '3', interval: '60' },
    { type: 'market', positionId: '3' },
    { type: 'stop', positionId: '3', price: '1', trailPercent: '5' },
    { type: 'timeExit', positionId: '3', validAfter: '1', price: '1' },
    { type: 'twap', positionId: '3', usdcAmount: '10', exitBps: 100, parts: 2, interval: '60' },
    { type: 'twap', positionId: '3', usdcAmount: '10', parts: 2, interval: '60', stopLossPercent: '8' },
  ])
    await expect(orders.preparePlace(wrong as never), JSON.stringify(wrong)).rejects.toBeInstanceOf(ValidationError)
  await expect(orders.prepareCancel({ orderId: '0x12' })).rejects.toBeInstanceOf(ValidationError)
})
