import { env } from 'cloudflare:workers'
import { OrderEnd } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import { beforeAll, expect, it } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createHistory } from '../../src/history/client.ts'
import { readOpenOrders } from '../../src/history/tables/orders.ts'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import { node } from '../support/history-oracle.ts'
import { cancelOrder, executeOrder, type Placed, placeOrder } from '../support/orders.ts'
import { reorgChain } from '../support/reorg-chain.ts'
import { call, deployment } from '../support/surfaces.ts'

// The index of orders, on a chain with reorgs. No keeper runs here.

const { chain: chainConfig, trading } = parseConfig(workerVars(deployment))
if (chainConfig === undefined) throw new Error('The deployment names no chain.')
const chain = createChain(chainConfig, trading) as TradingChain
const history = createHistory(env, chain)
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const anvil = (method: string, params: unknown[]) => node.request({ method, params } as never)

const ordersOf = ({ agentId }: Trader, query = {}) => history.orders({ agentId: BigInt(agentId), limit: 10, ...query })
const idsOf = async (trader: Trader, query = {}) => (await ordersOf(trader, query)).orders.map(({ orderId }) => orderId)
const orderOf = async ({ agentId }: Trader, { orderId }: Placed) =>
  (await history.order(BigInt(agentId), orderId)).order
const openIds = async () => (await readOpenOrders(env.HISTORY, { after: undefined, limit: 1_000 })).map(idOf)
const idOf = ({ orderId }: { orderId: Hex }) => orderId

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
  await anvil('anvil_mine', ['0x8', '0x0']) // no reorg of this file is deep enough to withdraw the registration
})

it('an order is read with its content, its executions and its end, from the chain alone and from the index', async () => {
  const filled = await placeOrder(trader, { parts: 2, interval: 60n })
  await executeOrder(filled)
  const cancelled = await placeOrder(trader, { symbol: 'META', key: 2n })
  await cancelOrder(trader, cancelled)
  const open = await placeOrder(trader, { symbol: 'TSLA', validAfter: filled.order.validUntil })

  async function expectOrders() {
    const { orders, next, lagBlocks } = await ordersOf(trader)
    expect({ ids: orders.map(idOf), next, lagBlocks }).toEqual({
      ids: [open, cancelled, filled].map(idOf),
      next: undefined,
      lagBlocks: 0,
    })
    expect(orders.map(({ order }) => order)).toEqual([open, cancelled, filled].map(({ order }) => order))
    expect(orders[2]?.executions).toMatchObject([{ part: 1, keeper: deployment.accounts.payer.address }])
    expect(orders.map(({ end }) => end?.reason)).toEqual([undefined, OrderEnd.Cancelled, undefined])
    expect(await idsOf(trader, { state: 'open' })).toEqual([open, filled].map(idOf))
    expect(await idsOf(trader, { state: 'past' })).toEqual([cancelled.orderId])
    expect(await idsOf(trader, { state: 'past', deadIds: [open.orderId] })).toEqual([open, cancelled].map(idOf))
    expect(await orderOf(trader, filled)).toEqual(orders[2])
  }
  await expectOrders()
  await indexer().catchUp()
  await expectOrders()
  expect(await openIds()).toEqual(expect.arrayContaining([open, filled].map(idOf)))
  expect(await openIds()).not.toContain(cancelled.orderId)

  const { orders: page, next } = await ordersOf(trader, { limit: 2 })
  expect(page.map(idOf)).toEqual([open, cancelled].map(idOf))
  expect(await idsOf(trader, { before: next })).toEqual([filled.orderId])
})

it('a trade of an order names the order as its source, and a signed one in the same position does not', async () => {
  const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
  const sale = await placeOrder(trader, { symbol: 'MSFT', positionId: BigInt(positionId) })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: '5000' })
  await executeOrder(sale)
  const sources = async () => {
    const { body } = await call('getTradeHistory', { agentId: trader.agentId, positionId })
    return body.trades.map(({ source }: { source: string }) => source)
  }
  expect(await sources()).toEqual(['order', 'intent', 'intent'])
  await indexer().catchUp()
  expect(await sources()).toEqual(['order', 'intent', 'intent'])
  const { body } = await call('getPosition', { agentId: trader.agentId, positionId })
  expect(body.position).toMatchObject({ status: 'Closed', closedBy: 'order' })
})

it('a reorg takes back an execution, and the placement with it when it goes as deep', async () => {
  await anvil('anvil_mine', ['0x40', '0x0'])
  const before = Number((await node.getBlock()).number)
  const placed = await placeOrder(trader, { symbol: 'GOOGL' })
  const after = Number((await node.getBlock()).number)
  await anvil('anvil_mine', ['0x4', '0x0'])
  await executeOrder(placed)
  await indexer().catchUp()
  expect((await orderOf(trader, placed))?.executions).toHaveLength(1)
  expect(await openIds()).not.toContain(placed.orderId)

  await reorgChain(after)
  await indexer().catchUp()
  expect(await orderOf(trader, placed)).toMatchObject({ executions: [], end: null })
  expect(await openIds()).toContain(placed.orderId)

  await reorgChain(before)
  await indexer().catchUp()
  expect(await orderOf(trader, placed)).toBeUndefined()
  expect(await openIds()).not.toContain(placed.orderId)
})
