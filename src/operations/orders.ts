import type { OrderRecord } from '@agent-trading-service/protocol/order-record'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import type { Block } from '../chain/configured-chain.ts'
import type { SigningTerms } from '../chain/read-intent-terms.ts'
import { getOrderTerms, readOrderStates } from '../chain/read-order-terms.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { placeOrder, cancelOrder as relayCancellation } from '../intents/order.ts'
import { quoteOrder } from '../intents/order-quote.ts'
import { withNote } from '../resources/intent-input.ts'
import { endReasonOf, orderList, orderQuote, orderReceipt, orderResponse, presentOrder } from '../resources/order.ts'
import { cancellationBody, orderBody, orderQuery, toOrder } from '../resources/order-input.ts'
import { pageLimit, presentAsOf } from '../resources/primitives.ts'
import { presentTradeCursor, tradeCursor } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'

export const getOrderQuote = defineOperation(
  {
    id: 'getOrderQuote',
    tool: {
      name: 'svc_get_order_quote',
      description:
        'First step of an order that waits on chain for a price or a time: type limit, breakout, stop, takeProfit, trailingStop, twap, timeExit; or cancel with orderId. Sign typedData in a wallet (EIP-712), then call svc_submit_order or svc_cancel_order. Examples: {"agentId":"1","type":"limit","symbol":"NVDA","usdcAmount":"250","price":"120","stopLossPercent":"8"}, {"agentId":"1","type":"trailingStop","positionId":"3","trailPercent":"5"}',
    },
    path: '/agents/{agentId}/orders/quote',
    tag: 'Orders',
    summary: 'Get a quote for an order',
    description:
      'Returns the typed data of an order, its id, the body to post, the rules for placing it, and what the router would say of its next part now (`executionChecks`). With type `cancel`, returns those of the cancellation of `orderId`.',
    query: orderQuery,
    output: orderQuote,
  },
  async (context: Context, { agentId, ...query }) => quoteOrder(context, agentId, query),
)

export const submitOrder = defineOperation(
  {
    id: 'submitOrder',
    tool: {
      name: 'svc_submit_order',
      description:
        'Places an order; anybody may execute it on chain once its price or time has come. Before: svc_get_order_quote; send its body with agentId and signature. Repeating it is safe: it is placed once. After: svc_list_orders.',
    },
    method: 'post',
    path: '/agents/{agentId}/orders',
    tag: 'Orders',
    summary: 'Place an order',
    description:
      "Verifies a PlaceOrder message signed by the agent's signer and relays it. From then on the order is on chain. When it is due, each part passes exactly what a signed intent of that moment passes; a part that is refused waits, and the order says why.",
    body: withNote(orderBody),
    status: 201,
    output: orderReceipt,
  },
  async (context: Context, { agentId, signature, note, ...body }, call) =>
    placeOrder(context, call, toOrder(body, agentId), { symbol: body.symbol, signature, note }),
)

export const cancelOrder = defineOperation(
  {
    id: 'cancelOrder',
    tool: {
      name: 'svc_cancel_order',
      description:
        'Cancels an open order. Before: svc_get_order_quote with type cancel and orderId; send its body with agentId, orderId and signature. Repeating it is safe.',
    },
    method: 'post',
    path: '/agents/{agentId}/orders/{orderId}/cancel',
    tag: 'Orders',
    summary: 'Cancel an order',
    description:
      "Verifies a CancelOrder message signed by the agent's signer and relays it. Once it is mined, no later block executes the order.",
    body: cancellationBody,
    status: 201,
    output: orderReceipt,
  },
  async (context: Context, signed, call) => relayCancellation(context, call, signed),
)

export const listOrders = defineOperation(
  {
    id: 'listOrders',
    tool: {
      name: 'svc_list_orders',
      description:
        'Lists the orders of an agent, newest first, with what each waits for, the distance to its trigger and why its last try was refused. Example: {"agentId":"1","state":"open"}',
    },
    path: '/agents/{agentId}/orders',
    tag: 'Orders',
    summary: 'List orders',
    description:
      'Returns the orders of an agent, newest first: those that wait, those that have ended, or both. Complete up to the block of `asOf`.',
    query: z.object({
      state: z
        .enum(['open', 'past'])
        .optional()
        .describe('open: may still execute. past: filled, cancelled, expired or failed'),
      limit: pageLimit,
      cursor: tradeCursor.optional(),
    }),
    output: orderList,
  },
  async (context: Context, { agentId, state, limit, cursor }, call) => {
    const { history, trading } = context
    const terms = await getOrderTerms(trading, agentId)
    const query = { agentId, limit, before: cursor }
    // Orders that have ended without an event, because they expired or a stop ended them, are past as well.
    const dead =
      state === undefined ? { ids: [], asOf: undefined, rowsRead: 0 } : await deadOrders(context, terms, agentId)
    const { orders, next, asOf, lagBlocks, rowsRead } = await history.orders({
      ...query,
      state,
      deadIds: dead.ids,
    })
    await chargeRowsRead(call, dead.rowsRead + rowsRead)
    return {
      agentId: `${agentId}`,
      orders: await presentOrders(context, terms, orders, asOf),
      nextCursor: next ? presentTradeCursor(next) : null,
      asOf: presentAsOf(asOf, dead.asOf),
      lagBlocks,
    }
  },
)

export const getOrder = defineOperation(
  {
    id: 'getOrder',
    path: '/agents/{agentId}/orders/{orderId}',
    tag: 'Orders',
    summary: 'Get an order',
    description:
      'Returns an order: its terms, state, what it waits for, the distance to its trigger, the peak of a trailing stop, the next part, its executions, and the reason of the last refusal.',
    output: orderResponse,
  },
  async (context: Context, { agentId, orderId }) => {
    const { history, trading } = context
    const [terms, { order, asOf }] = await Promise.all([
      getOrderTerms(trading, agentId),
      history.order(agentId, orderId),
    ])
    if (order === undefined) throw refuse('ORDER_NOT_FOUND', { agentId, orderId })
    const [presented] = await presentOrders(context, terms, [order], asOf)
    if (presented === undefined) throw new Error('The order that was read is not presented')
    return { ...presented, asOf: presentAsOf(asOf) }
  },
)

const isWaiting = ({ order, executions, end }: OrderRecord) => end === null && executions.length < order.parts

/** Reads the ids of orders that the index has as open and that can never execute again. */
async function deadOrders({ history, trading }: HistoryContext, terms: SigningTerms, agentId: bigint) {
  const { orders, asOf, rowsRead } = await history.openOrders(agentId)
  const states = await readOrderStates(trading, terms, orders, asOf)
  const ids = orders.flatMap((order, index) => (endReasonOf(order, states[index], nowAt(asOf)) ? [order.orderId] : []))
  return { ids, asOf, rowsRead }
}

async function presentOrders(
  { trading, keeper }: Pick<Context, 'keeper' | 'trading'>,
  terms: SigningTerms,
  orders: readonly OrderRecord[],
  asOf: Block,
) {
  const waiting = orders.filter(isWaiting)
  const [states, reports, symbolOf] = await Promise.all([
    readOrderStates(trading, terms, waiting, asOf),
    keeper?.findOrders(waiting.map(({ orderId }) => orderId)),
    symbolsOf(
      trading,
      orders.map(({ order }) => order.token),
    ),
  ])
  return orders.map(order => {
    const index = waiting.indexOf(order)
    return presentOrder(order, {
      chain: states[index],
      report: reports?.[index],
      symbol: symbolOf(order.order.token),
      now: nowAt(asOf),
    })
  })
}
