import { OrderCondition } from './order-typed-data.ts'

/** The sides and conditions of orders by their numbers, as responses and bodies spell them. */
export const ORDER_SIDES = ['open', 'add', 'reduce'] as const
export const ORDER_CONDITIONS = ['none', 'atOrBelow', 'atOrAbove', 'trailing'] as const

/** The types of orders: what each waits for, and whether it buys; a TWAP does either. */
export const ORDER_TYPES = {
  limit: { condition: OrderCondition.AtOrBelow, buys: true },
  breakout: { condition: OrderCondition.AtOrAbove, buys: true },
  stop: { condition: OrderCondition.AtOrBelow, buys: false },
  takeProfit: { condition: OrderCondition.AtOrAbove, buys: false },
  trailingStop: { condition: OrderCondition.Trailing, buys: false },
  twap: { condition: OrderCondition.None, buys: undefined },
  timeExit: { condition: OrderCondition.None, buys: false },
} as const
export type OrderType = keyof typeof ORDER_TYPES

export const MAX_ORDER_PARTS = 100
export const DEFAULT_ORDER_SLIPPAGE_BPS = 100
/** How long a purchase waits unless its signer says so. */
export const PURCHASE_LIFETIME_SECONDS = 90n * 86_400n
/**
 * The last second that the order book knows, in Unix seconds: an order to sell waits as long as its position is open.
 */
export const LAST_ORDER_SECOND = (1n << 40n) - 1n
