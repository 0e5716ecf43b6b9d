import type { Address, Hex } from 'viem'
import type { ExitRule } from './exit-rule.ts'
import { type Domain, digestOf, hashExits, type Message, signingTypes } from './typed-data.ts'

/** What an order does: `IOrderBook.Side`. */
export const OrderSide = { Open: 0, Add: 1, Reduce: 2 } as const

/** What an order waits for: `IOrderBook.Condition`. */
export const OrderCondition = { None: 0, AtOrBelow: 1, AtOrAbove: 2, Trailing: 3 } as const

/** Why an order has ended before its last part: `IOrderBook.OrderEnd`. */
export const OrderEnd = { Cancelled: 0, Replaced: 1, Expired: 2, Voided: 3, PositionClosed: 4 } as const

/** An order as `OrderBook.placeOrder` takes it. USDC in base units, prices with 8 decimals, times in Unix seconds. */
export type Order = {
  agentId: bigint
  side: number
  token: Address
  positionId: bigint
  usdcAmount: bigint
  exitBps: number
  exits: readonly ExitRule[]
  maxSlippageBps: number
  condition: number
  price: bigint
  trailBps: number
  validAfter: bigint
  validUntil: bigint
  parts: number
  interval: bigint
  key: bigint
  deadline: bigint
  nonce: bigint
}

/** Returns the message that the signer signs to place an order, fields in signing order. */
export function orderMessage({ exits, ...order }: Order): Message {
  const message: Message = { ...order, exitsHash: hashExits(exits) }
  return Object.fromEntries(signingTypes.PlaceOrder.map(({ name }) => [name, message[name] ?? 0n]))
}

/** Returns an order as JSON, integers above 2^53 and those that may be as digits. */
export const serializeOrder = (order: Order): string =>
  JSON.stringify(order, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))

/** Returns the order of `serializeOrder`. */
export const parseOrder = (json: string): Order =>
  JSON.parse(json, (name, value: unknown) => (typeof value === 'string' && name !== 'token' ? BigInt(value) : value))

/** Returns the digest that the signer signs to place an order. It is the order's id. */
export const orderIdOf = (domain: Domain, order: Order): Hex => digestOf(domain, 'PlaceOrder', orderMessage(order))
