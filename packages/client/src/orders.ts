import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import {
  DEFAULT_ORDER_SLIPPAGE_BPS,
  LAST_ORDER_SECOND,
  MAX_ORDER_PARTS,
  ORDER_CONDITIONS,
  ORDER_SIDES,
  ORDER_TYPES,
  PURCHASE_LIFETIME_SECONDS,
} from '@agent-trading-service/protocol/order-types'
import { PERCENT_TEXT, percentToBps } from '@agent-trading-service/protocol/percent'
import {
  bpsOf,
  deadlineOf,
  formatExits,
  type Ladder,
  ladderOf,
  type Percent,
  signAndSubmit,
  type TradeOptions,
  toBps,
  unsignedOf,
} from './agent.ts'
import { formatToken, formatUsdc, type Integer, parseToken, toDigits, toUsdcUnits, type UsdcAmount } from './amounts.ts'
import { ValidationError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { type ClientContext, type MessageOptions, type Prepared, prepare } from './prepare.ts'
import type { ReadOutput, Reads } from './reads.ts'
import { exitRulesOf, hashExits } from './typed-data.ts'

export type OrderReceipt = components['schemas']['OrderReceipt']

/** What to buy: a new position with its exit ladder, or more of one. `usdcAmount` is what all parts spend together. */
type Purchase = { usdcAmount: UsdcAmount; maxSlippageBps?: number } & (
  | ({ symbol: string } & Ladder)
  | { positionId: Integer }
)
/** What to sell: the share of the position that all parts sell together, in basis points; all of it by default. */
type Sale = { positionId: Integer; exitBps?: number }
type OrderOptions = TradeOptions & {
  /** Not executed before; Unix seconds. */
  validAfter?: Integer
  /**
   * Not executed after; Unix seconds. By default a purchase waits for 90 days, and a sale as long as its position is
   * open.
   */
  validUntil?: Integer
  /** Executed in this many equal parts, at least `interval` seconds apart. */
  parts?: number
  interval?: Integer
  /** Replaces the agent's open order with the same key. */
  key?: Integer
}
/**
 * An order. Prices are the oracle's, as decimal strings in US dollars for one token; that of a trailing stop activates
 * it.
 */
export type OrderRequest = OrderOptions &
  (
    | ({ type: 'limit' | 'breakout'; price: string } & Purchase)
    | ({ type: 'stop' | 'takeProfit'; price: string } & Sale)
    | ({ type: 'trailingStop'; price?: string } & ({ trailBps: number } | { trailPercent: Percent }) & Sale)
    | ({ type: 'twap'; parts: number; interval: Integer } & (Purchase | Sale))
    | ({ type: 'timeExit'; validAfter: Integer } & Sale)
  )
export type OrderType = OrderRequest['type']
export type CancelOrderRequest = MessageOptions & { orderId: string }

/** Every field that an order of some type may have. */
type Fields = OrderOptions & {
  type: OrderType
  symbol?: string
  positionId?: Integer
  usdcAmount?: UsdcAmount
  exitBps?: number
  maxSlippageBps?: number
  price?: string
  trailBps?: number
  trailPercent?: Percent
}

const CLOSE_BPS = 10_000
const PRICE_DECIMALS = 8

/** Orders of an agent, which wait on chain. They take the nonces of its trades, so they wait for each other. */
export function createOrders(context: ClientContext, reads: Reads, agentId: string) {
  const { deployment } = context
  const path = '/agents/{agentId}/orders'
  type OrderQuote = ReadOutput<'getOrderQuote'>

  async function preparePlace(request: OrderRequest): Promise<Prepared<OrderQuote, OrderReceipt>> {
    const given: Fields = request
    const { condition, buys } = termsOf(given)
    const opens = buys && given.positionId === undefined
    const exits = opens ? ladderOf(request as unknown as Ladder) : []
    const price = hasPrice(condition) || given.price !== undefined ? parseToken(given.price ?? '', PRICE_DECIMALS) : 0n
    const trailBps = condition === OrderCondition.Trailing ? toBps(trailOf(given), 'trailBps') : 0
    const usdcAmount = given.usdcAmount === undefined ? 0n : toUsdcUnits(given.usdcAmount)
    const exitBps = buys ? 0 : toBps(given.exitBps ?? CLOSE_BPS, 'exitBps')
    const maxSlippageBps = buys ? toBps(given.maxSlippageBps ?? DEFAULT_ORDER_SLIPPAGE_BPS, 'maxSlippageBps', 0) : 0
    const end = buys ? BigInt(await deployment.now()) + PURCHASE_LIFETIME_SECONDS : LAST_ORDER_SECOND
    const isInParts = given.type === 'twap' || given.parts !== undefined
    const schedule = {
      validAfter:
        given.type === 'timeExit' ? toDigits(given.validAfter ?? '', 'validAfter') : digits(given, 'validAfter'),
      validUntil: toDigits(given.validUntil ?? end, 'validUntil'),
      parts: isInParts ? toParts(given.parts) : 1,
      interval: digits(given, 'interval'),
      key: digits(given, 'key'),
    }
    const positionId = opens ? '0' : toDigits(given.positionId ?? '', 'positionId')
    // The order book refuses another token than the position's.
    const named = opens ? `${given.symbol}` : (await reads.getPosition({ agentId, positionId })).position.symbol
    const { symbol, token } = await deployment.tokenOf(named, agentId)
    const side = opens ? OrderSide.Open : buys ? OrderSide.Add : OrderSide.Reduce
    const amount = buys ? { usdcAmount: formatUsdc(usdcAmount) } : undefined
    const trigger = price === 0n ? undefined : { price: formatToken(price, PRICE_DECIMALS) }
    return prepare(context, {
      kind: 'intent',
      primaryType: 'PlaceOrder',
      message: {
        agentId,
        side,
        token,
        positionId,
        usdcAmount: `${usdcAmount}`,
        exitBps,
        exitsHash: hashExits(exits),
        maxSlippageBps,
        condition,
        price: `${price}`,
        trailBps,
        ...schedule,
      },
      nonceHolder: { agentId },
      body: {
        side: ORDER_SIDES[side],
        symbol,
        positionId,
        ...amount,
        exitBps,
        ...(opens && { exits: exitRulesOf(exits) }),
        maxSlippageBps,
        condition: ORDER_CONDITIONS[condition],
        ...trigger,
        trailBps,
        ...schedule,
      },
      unsigned: unsignedOf(request),
      quote: {
        path: `${path}/quote`,
        query: {
          type: given.type,
          ...(opens ? { symbol, exits: formatExits(exits) } : { positionId }),
          ...(buys ? { ...amount, maxSlippageBps } : { exitBps }),
          ...trigger,
          ...(trailBps > 0 && { trailBps }),
          ...schedule,
        },
      },
      submit: { method: 'POST', path },
      pathValues: { agentId },
      deadline: deadlineOf(request),
    })
  }

  async function prepareCancel(request: CancelOrderRequest): Promise<Prepared<OrderQuote, OrderReceipt>> {
    const orderId = toOrderId(request.orderId)
    return prepare(context, {
      kind: 'intent',
      primaryType: 'CancelOrder',
      message: { agentId, orderId },
      nonceHolder: { agentId },
      body: {},
      quote: { path: `${path}/quote`, query: { type: 'cancel', orderId } },
      submit: { method: 'POST', path: `${path}/{orderId}/cancel` },
      pathValues: { agentId, orderId },
      deadline: deadlineOf(request),
    })
  }

  const send = (prepareMessage: () => Promise<Prepared<OrderQuote, OrderReceipt>>) =>
    context.inTurn(agentId, async () => signAndSubmit(await prepareMessage()))

  return {
    preparePlace,
    prepareCancel,
    /**
     * Places an order; it executes on chain once its price or time has come.
     * @example await agent.orders.place({ type: 'limit', symbol: 'NVDA', usdcAmount: '250', price: '120',
     * stopLossPercent: '8' }) await agent.orders.place({ type: 'trailingStop', positionId: '3', trailPercent: '5' })
     * await agent.orders.place({ type: 'twap', positionId: '3', usdcAmount: '1000', parts: 10, interval: '900' })
     */
    place: (request: OrderRequest) => send(() => preparePlace(request)),
    /**
     * Cancels an open order; no later block executes it.
     * @example
     * await agent.orders.cancel({ orderId: '0x…' })
     */
    cancel: (request: CancelOrderRequest) => send(() => prepareCancel(request)),
  }
}

const hasPrice = (condition: number) => condition === OrderCondition.AtOrBelow || condition === OrderCondition.AtOrAbove

const trailOf = ({ trailBps, trailPercent }: Fields) =>
  trailBps ?? (trailPercent === undefined ? 0 : bpsOf('trailPercent', trailPercent, percentToBps, PERCENT_TEXT))

const digits = (given: Fields, field: 'validAfter' | 'interval' | 'key') => toDigits(given[field] ?? 0n, field)

/**
 * Returns what an order of a type waits for and whether it buys. Throws a `ValidationError` if it has a field that such
 * an order has no use for: the caller means something else.
 */
function termsOf(given: Fields): { condition: number; buys: boolean } {
  const { type, usdcAmount, positionId } = given
  if (!Object.hasOwn(ORDER_TYPES, type))
    throw new ValidationError('INVALID_REQUEST', `type is ${type}; pass one of ${Object.keys(ORDER_TYPES).join(', ')}.`)
  const { condition, buys = usdcAmount !== undefined } = ORDER_TYPES[type]
  if (buys && usdcAmount === undefined)
    throw new ValidationError('INVALID_REQUEST', `An order of type ${type} buys; pass usdcAmount.`)
  const opening = ['symbol', 'exits', 'stopLossPercent', 'takeProfitPercent']
  const unused = [
    ...(buys ? ['exitBps'] : ['usdcAmount', 'maxSlippageBps']),
    ...(buys && positionId === undefined ? [] : opening),
    ...(condition === OrderCondition.Trailing ? [] : ['trailBps', 'trailPercent']),
    ...(condition === OrderCondition.None ? ['price'] : []),
  ]
  // A zero says nothing: it is what the message has there.
  const extra = unused.find(name => ![undefined, 0].includes(given[name as keyof Fields] as undefined))
  if (extra === undefined) return { condition, buys }
  const does = !buys ? 'sells' : positionId === undefined ? 'opens a position' : 'adds to a position'
  throw new ValidationError('INVALID_REQUEST', `An order of type ${type} that ${does} has no ${extra}.`)
}

function toParts(parts: number | undefined): number {
  if (parts !== undefined && Number.isInteger(parts) && parts >= 1 && parts <= MAX_ORDER_PARTS) return parts
  throw new ValidationError('INVALID_REQUEST', `parts is ${parts}; pass a whole number from 1 to ${MAX_ORDER_PARTS}.`)
}

function toOrderId(orderId: string): string {
  if (/^0x[0-9a-fA-F]{64}$/.test(orderId)) return orderId.toLowerCase()
  throw new ValidationError('INVALID_REQUEST', `orderId is ${orderId}; pass 0x and 64 hex digits.`)
}
