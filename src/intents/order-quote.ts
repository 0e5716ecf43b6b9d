import type { Check, TradingTerms } from '@agent-trading-service/protocol/check'
import { defaultLadder } from '@agent-trading-service/protocol/exit-ladder-validation'
import {
  findOrderProblem,
  isBuy,
  ORDER_FIELDS,
  partExitBps,
  partUsdcAmount,
  triggerPrice,
} from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderCondition, OrderSide, orderMessage } from '@agent-trading-service/protocol/order-typed-data'
import {
  DEFAULT_ORDER_SLIPPAGE_BPS,
  LAST_ORDER_SECOND,
  ORDER_TYPES,
  type OrderType,
  PURCHASE_LIFETIME_SECONDS,
} from '@agent-trading-service/protocol/order-types'
import {
  addChecks,
  openChecks,
  orderSizeChecks,
  placementChecks,
  reduceChecks,
} from '@agent-trading-service/protocol/router-checks'
import { lossAtStop, orderDistanceChecks, stopDistanceChecks } from '@agent-trading-service/protocol/stop-loss'
import { formatUnits } from 'viem'
import { getTerms, type IntentTerms } from '../chain/read-intent-terms.ts'
import { tokenBySymbol } from '../chain/token-symbols.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { malformed, refuse } from '../errors/refuse.ts'
import { requestedLadder } from '../resources/exit-rule.ts'
import { presentCheck } from '../resources/intent-quote.ts'
import { presentOrderTerms } from '../resources/order.ts'
import { type OrderQuery, presentOrderBody } from '../resources/order-input.ts'
import { ORACLE_DECIMALS } from '../resources/price.ts'
import { parseUsdc } from '../resources/primitives.ts'
import { quoteDeadline } from './deadline.ts'
import { lossWarnings, presentLossAtStop } from './stop-loss.ts'
import { presentQuote } from './trade-quote.ts'

const BPS = 10_000
const purchaseFields = [
  'symbol',
  'positionId',
  'usdcAmount',
  'exits',
  'stopLossPercent',
  'takeProfitPercent',
  'maxSlippageBps',
] as const
/** Every order may have them. */
const scheduleFields = ['validAfter', 'validUntil', 'parts', 'interval', 'key', 'deadline'] as const

/** The fields of a request that each type needs and may have. */
const fieldsOf: Record<OrderType, { needs: Field[]; may: readonly Field[] }> = {
  limit: { needs: ['usdcAmount', 'price'], may: purchaseFields },
  breakout: { needs: ['usdcAmount', 'price'], may: purchaseFields },
  stop: { needs: ['positionId', 'price'], may: ['exitBps'] },
  takeProfit: { needs: ['positionId', 'price'], may: ['exitBps'] },
  trailingStop: { needs: ['positionId', 'trailBps'], may: ['exitBps', 'price', 'trailPercent'] },
  twap: { needs: ['parts', 'interval'], may: [...purchaseFields, 'exitBps'] },
  timeExit: { needs: ['positionId', 'validAfter'], may: ['exitBps'] },
}
type Field = Exclude<keyof OrderQuery, 'type'>

/**
 * Returns the quote of an order or of a cancellation. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND, INVALID_REQUEST,
 * INVALID_ORDER.
 */
export async function quoteOrder(context: Context, agentId: bigint, { type, ...given }: OrderQuery) {
  if (type === 'cancel') return quoteCancellation(context, agentId, given)
  const { trading } = context
  if (given.trailBps !== undefined && given.trailPercent !== undefined)
    throw malformed('trailBps and trailPercent both say the distance: send one of them')
  const query = { ...given, trailBps: given.trailBps ?? given.trailPercent }
  const missing = missingFields(type, query)
  const { positionId, symbol: named } = query
  const token = named === undefined ? undefined : await tokenBySymbol(trading, named)
  const usdcAmount = query.usdcAmount === undefined ? undefined : parseUsdc(query.usdcAmount)
  const buys = usdcAmount !== undefined
  const parts = query.parts ?? 1
  const exitBps = query.exitBps ?? BPS
  const part = buys
    ? { usdcAmount: partUsdcAmount({ usdcAmount, parts }, 1) }
    : { exitBps: partExitBps({ exitBps, parts }, 1) }
  const { block, terms } = await getTerms(trading, agentId, { token, positionId, ...part })
  const { domain, openOrderCount, maxOpenOrders } = orderBookOf(terms)
  const now = nowAt(block)
  const deadline = quoteDeadline(query.deadline, block, terms.extension)
  const opens = buys && positionId === undefined
  const address = token ?? terms.position?.token
  const order: Order | undefined =
    missing.length > 0 || address === undefined
      ? undefined
      : {
          agentId,
          side: opens ? OrderSide.Open : buys ? OrderSide.Add : OrderSide.Reduce,
          token: address,
          positionId: positionId ?? 0n,
          usdcAmount: usdcAmount ?? 0n,
          exitBps: buys ? 0 : exitBps,
          exits: opens ? (requestedLadder(query) ?? defaultLadder(terms.trackConfig)) : [],
          maxSlippageBps: buys ? (query.maxSlippageBps ?? DEFAULT_ORDER_SLIPPAGE_BPS) : 0,
          condition: ORDER_TYPES[type].condition,
          price: query.price ?? 0n,
          trailBps: query.trailBps ?? 0,
          validAfter: query.validAfter ?? 0n,
          validUntil: query.validUntil ?? (buys ? now + PURCHASE_LIFETIME_SECONDS : LAST_ORDER_SECOND),
          parts,
          interval: query.interval ?? 0n,
          key: query.key,
          deadline,
          nonce: terms.nonce,
        }
  const problem = order && findOrderProblem(order, now)
  if (problem)
    throw refuse('INVALID_ORDER', { field: BigInt(ORDER_FIELDS.indexOf(problem.field)), value: problem.value })
  const purchase = opens ? order : undefined
  const loss = purchase && lossAtStop(terms, { ...purchase, usdcCostBasis: purchase.usdcAmount })
  const symbol = terms.token?.symbol ?? named ?? ''
  const whenExecuted = order ? executionChecks(terms, order, now) : []
  return {
    ...(await presentQuote(context, block, {
      agentId,
      terms: { ...terms, domain },
      primaryType: 'PlaceOrder',
      messageKind: buys ? 'PlaceOrder' : 'PlaceReduction',
      checks: [
        ...(purchase ? stopDistanceChecks(terms, { ...purchase, ...part }) : []),
        ...(order ? orderDistanceChecks(terms, order) : []),
        ...(order ? orderSizeChecks(terms, order) : []),
        ...placementChecks(terms, { buys, deadline }),
        {
          rule: 'openOrders',
          code: 'TOO_MANY_OPEN_ORDERS',
          // An order with a key may replace one.
          pass: openOrderCount < maxOpenOrders || query.key !== 0n,
          limit: maxOpenOrders,
          used: openOrderCount,
        },
      ],
      deadline,
      intent: order && (() => ({ message: orderMessage(order), body: presentOrderBody(order, symbol) })),
      warnings: [
        ...(loss ? lossWarnings(loss) : []),
        ...(order && terms.token ? reachedWarnings(order, terms.token.quote.price) : []),
        ...executionWarnings(whenExecuted),
      ],
      missing,
    })),
    orderBook: domain.verifyingContract,
    order: order ? presentOrderTerms(order, symbol) : null,
    executionChecks: whenExecuted.map(presentCheck),
    ...(loss && presentLossAtStop(loss)),
  }
}

function orderBookOf({ orders }: IntentTerms) {
  if (orders === undefined) throw refuse('ORDER_BOOK_NOT_SET')
  return orders
}

type Query = Omit<OrderQuery, 'type'>

/**
 * Returns the fields that a request for an order lacks. Throws INVALID_REQUEST if it has some that the order has no use
 * for.
 */
function missingFields(type: OrderType, query: Query): string[] {
  const { needs, may } = fieldsOf[type]
  const isGiven = (field: Field) => query[field] !== undefined
  assertFields(type, query, [...needs, ...may, ...scheduleFields])
  if (isGiven('symbol') && isGiven('positionId'))
    throw malformed('symbol opens a position, positionId changes one: send one of them')
  if (isGiven('usdcAmount') && isGiven('exitBps')) throw malformed('usdcAmount buys, exitBps sells: send one of them')
  const buys = needs.includes('usdcAmount') || isGiven('usdcAmount')
  const target = buys && !isGiven('positionId') ? 'symbol' : 'positionId'
  return [...new Set<Field>([...needs, target])].filter(field => !isGiven(field))
}

function assertFields(type: OrderQuery['type'], query: Query, known: readonly Field[]) {
  // A zero in a field that the type has no use for is what the message signs anyway.
  const isUnused = (field: Field) => query[field] !== undefined && query[field] !== 0 && query[field] !== 0n
  const unused = (Object.keys(query) as Field[]).filter(field => isUnused(field) && !known.includes(field))
  if (unused.length === 0) return
  const sells = known.includes('positionId') && !known.includes('symbol')
  const why = sells && unused.includes('symbol') ? ': it sells an open position, which positionId names' : ''
  throw malformed(`an order of type ${type} has no ${unused.join(', ')}${why}`)
}

/**
 * Returns the checks of executing the first part at this moment, in the router's order. A keeper executes it, with the
 * slippage that an exit has when it becomes due.
 */
function executionChecks(terms: TradingTerms, order: Order, now: bigint): Check[] {
  const exitBps = partExitBps(order, 1)
  const start = terms.extension?.tradePolicy.exitSlippageStartBps
  const strangerSlippageBps = start === undefined ? undefined : Number(start)
  const purchase = { ...order, usdcAmount: partUsdcAmount(order, 1), deadline: now, strangerSlippageBps }
  if (!isBuy(order)) return reduceChecks(terms, { exitBps, deadline: now, byStranger: true })
  return order.side === OrderSide.Open ? openChecks(terms, purchase) : addChecks(terms, purchase)
}

/** Returns a warning for each rule that the next part fails now: the order waits until it passes. */
const executionWarnings = (checks: readonly Check[]): string[] =>
  checks.flatMap(({ pass, rule, code, limit, after, used }) => {
    const value = after ?? used
    const figures = value === undefined || limit === undefined ? '' : ` (${value}, the limit is ${limit})`
    return pass ? [] : [`If it were due now, it would wait: the check ${rule} fails with ${code}${figures}.`]
  })

/** Returns a warning if the price is where the order executes. `price` has 8 decimals. */
function reachedWarnings(order: Order, price: bigint): string[] {
  const trigger = triggerPrice(order, 0n)
  if (trigger === undefined || price === 0n) return []
  const isReached = order.condition === OrderCondition.AtOrAbove ? price >= trigger : price <= trigger
  const now = `The oracle price is ${formatUnits(price, ORACLE_DECIMALS)} USD`
  return isReached ? [`${now}: the order executes with the next price that is posted.`] : []
}

async function quoteCancellation(context: Context, agentId: bigint, query: Query) {
  assertFields('cancel', query, ['orderId', 'deadline'])
  const { orderId, deadline: requestedDeadline } = query
  const { trading } = context
  const { block, terms } = await getTerms(trading, agentId, { orderId })
  const { domain, isOpen } = orderBookOf(terms)
  const deadline = quoteDeadline(requestedDeadline, block, terms.extension)
  return {
    ...(await presentQuote(context, block, {
      agentId,
      terms: { ...terms, domain },
      primaryType: 'CancelOrder',
      checks: [{ rule: 'orderOpen', code: 'ORDER_NOT_OPEN', pass: orderId === undefined || isOpen }],
      deadline,
      intent: orderId && (signed => ({ message: { agentId, orderId, ...signed }, body: {} })),
      missing: ['orderId'],
    })),
    orderBook: domain.verifyingContract,
    order: null,
    executionChecks: [],
  }
}
