import type { Order } from '@agent-trading-service/protocol/order-typed-data'
import {
  MAX_ORDER_PARTS,
  ORDER_CONDITIONS,
  ORDER_SIDES,
  ORDER_TYPES,
  type OrderType,
} from '@agent-trading-service/protocol/order-types'
import { STOP_PERCENT_TEXT, stopPercentToBps } from '@agent-trading-service/protocol/percent'
import { z } from 'zod'
import { exits, ladderQuery, percent, toExitRules } from './exit-rule.ts'
import { bpsQuery, signedFields, symbol } from './intent-input.ts'
import { ORDER_MEANINGS, orderId, presentOrderTerms } from './order.ts'
import { priceUsdIn } from './price.ts'
import {
  deadline,
  digitsAsNumber,
  humanUsdc,
  POSITIVE_DIGITS,
  parseUsdc,
  positionId,
  uint,
  usdcAmount,
} from './primitives.ts'

const MAX_BPS = 10_000

const seconds = (description: string, example?: string) =>
  uint.meta({ description: `${description}; Unix seconds`, ...(example !== undefined && { example }) })

/** The body that places an order: what was signed, in the units of the API. */
export const orderBody = z.object({
  side: z.enum(ORDER_SIDES).meta({ description: 'open and add buy, reduce sells', example: 'open' }),
  symbol,
  positionId: uint.default(0n).meta({ description: 'The position to change; 0 to open one', example: '1' }),
  usdcAmount: usdcAmount.optional().describe('Purchase: what all parts spend together; human USDC'),
  exitBps: z.int().min(0).max(MAX_BPS).default(0).describe(ORDER_MEANINGS.exitBps),
  exits: exits.optional(),
  maxSlippageBps: z.int().min(0).max(MAX_BPS).default(0).describe(ORDER_MEANINGS.maxSlippageBps),
  condition: z.enum(ORDER_CONDITIONS).default('none').meta({ description: 'What executes it', example: 'atOrBelow' }),
  price: priceUsdIn.optional().describe(ORDER_MEANINGS.price),
  trailBps: z.int().min(0).max(MAX_BPS).default(0).describe(ORDER_MEANINGS.trailBps),
  validAfter: seconds(ORDER_MEANINGS.validAfter, '0').default(0n),
  validUntil: seconds(ORDER_MEANINGS.validUntil),
  parts: z.int().min(1).max(MAX_ORDER_PARTS).default(1).describe(ORDER_MEANINGS.parts),
  interval: uint.default(0n).meta({ description: ORDER_MEANINGS.interval, example: '900' }),
  key: uint.default(0n).meta({ description: ORDER_MEANINGS.key, example: '0' }),
  ...signedFields,
})
export type OrderBody = z.output<typeof orderBody>

export const cancellationBody = z.object(signedFields)

/** What a quote of an order may be asked for. */
export const orderQuery = z.object({
  type: z.enum([...Object.keys(ORDER_TYPES), 'cancel'] as [OrderType | 'cancel']).meta({
    description:
      'limit buys at a price or lower, breakout at a price or higher; stop, takeProfit, trailingStop and timeExit sell; twap buys or sells in parts; cancel ends an order',
    example: 'limit',
  }),
  symbol: symbol.optional().describe('What to buy as a new position'),
  positionId: positionId.optional().describe('The position to add to or to sell from'),
  orderId: orderId.optional().describe('The order to cancel'),
  usdcAmount: usdcAmount.optional().describe('What all parts of a purchase spend together; human USDC'),
  exitBps: bpsQuery(1).optional().describe(`${ORDER_MEANINGS.exitBps}. 10000 by default`),
  ...ladderQuery,
  maxSlippageBps: bpsQuery(0).optional().describe(`${ORDER_MEANINGS.maxSlippageBps}. 100 by default`),
  price: priceUsdIn.optional().describe(ORDER_MEANINGS.price),
  trailBps: bpsQuery(1).optional().describe(ORDER_MEANINGS.trailBps),
  trailPercent: percent(stopPercentToBps, STOP_PERCENT_TEXT)
    .optional()
    .meta({ description: 'Instead of trailBps; percent', example: '5' }),
  validAfter: seconds(ORDER_MEANINGS.validAfter).optional(),
  validUntil: seconds(
    `${ORDER_MEANINGS.validUntil}. By default a purchase waits for 90 days, and a sale as long as its position is open`,
  )
    .meta({ pattern: POSITIVE_DIGITS })
    .optional(),
  parts: digitsAsNumber(z.int().min(1).max(MAX_ORDER_PARTS)).optional().describe(ORDER_MEANINGS.parts),
  interval: uint.optional().meta({ description: ORDER_MEANINGS.interval, example: '900', pattern: POSITIVE_DIGITS }),
  key: uint.default(0n).meta({ description: ORDER_MEANINGS.key, example: '0' }),
  deadline: deadline.optional().describe('Until when it may be placed; Unix seconds'),
})
export type OrderQuery = z.output<typeof orderQuery>

/**
 * Returns what a body says, as the order book takes it, but for the token: the body has its symbol. Throws
 * INVALID_AMOUNT.
 */
export const toOrder = (body: Omit<OrderBody, 'signature'>, agentId: bigint): Omit<Order, 'token'> => ({
  agentId,
  side: ORDER_SIDES.indexOf(body.side),
  positionId: body.positionId,
  usdcAmount: body.usdcAmount === undefined ? 0n : parseUsdc(body.usdcAmount),
  exitBps: body.exitBps,
  exits: body.exits === undefined ? [] : toExitRules(body.exits),
  maxSlippageBps: body.maxSlippageBps,
  condition: ORDER_CONDITIONS.indexOf(body.condition),
  price: body.price ?? 0n,
  trailBps: body.trailBps,
  validAfter: body.validAfter,
  validUntil: body.validUntil,
  parts: body.parts,
  interval: body.interval,
  key: body.key,
  deadline: body.deadline,
  nonce: body.nonce,
})

/** Presents an order as the body that places it, without the signature; fields that it does not use are left out. */
export function presentOrderBody(order: Order, symbol: string) {
  const { usdcAmount: _, exits, price, ...terms } = presentOrderTerms(order, symbol)
  return {
    ...terms,
    ...(order.usdcAmount > 0n && { usdcAmount: humanUsdc(order.usdcAmount) }),
    ...(exits.length > 0 && { exits }),
    ...(price !== null && { price }),
  }
}
