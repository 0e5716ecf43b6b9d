import type { Address, Hex } from 'viem'
import type { ExitRule } from './exit-rule.ts'
import { type Domain, digestOfFields, hashExits } from './typed-data.ts'

/** What an order does: `IOrderBook.Side`. */
export const OrderSide = { Open: 0, Add: 1, Reduce: 2 } as const

/** What an order waits for: `IOrderBook.Condition`. */
export const OrderCondition = { None: 0, AtOrBelow: 1, AtOrAbove: 2, Trailing: 3 } as const

/** Why an order has ended before its last part: `IOrderBook.OrderEnd`. */
export const OrderEnd = { Cancelled: 0, Replaced: 1, Expired: 2, Voided: 3, PositionClosed: 4 } as const

/** The EIP-712 primary types of the order book's domain, fields in signing order. */
export const orderTypes = {
  PlaceOrder: [
    { name: 'agentId', type: 'uint256' },
    { name: 'side', type: 'uint8' },
    { name: 'token', type: 'address' },
    { name: 'positionId', type: 'uint256' },
    { name: 'usdcAmount', type: 'uint256' },
    { name: 'exitBps', type: 'uint16' },
    { name: 'exitsHash', type: 'bytes32' },
    { name: 'maxSlippageBps', type: 'uint16' },
    { name: 'condition', type: 'uint8' },
    { name: 'price', type: 'uint256' },
    { name: 'trailBps', type: 'uint16' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validUntil', type: 'uint256' },
    { name: 'parts', type: 'uint8' },
    { name: 'interval', type: 'uint256' },
    { name: 'key', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
  CancelOrder: [
    { name: 'agentId', type: 'uint256' },
    { name: 'orderId', type: 'bytes32' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
} as const

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

export type CancelOrder = { agentId: bigint; orderId: Hex; deadline: bigint; nonce: bigint }

/** Returns an order as JSON, integers above 2^53 and those that may be as digits. */
export const serializeOrder = (order: Order): string =>
  JSON.stringify(order, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))

/** Returns the order of `serializeOrder`. */
export const parseOrder = (json: string): Order =>
  JSON.parse(json, (name, value: unknown) => (typeof value === 'string' && name !== 'token' ? BigInt(value) : value))

/** Returns the digest that the signer signs to place an order. It is the order's id. */
export const orderIdOf = (domain: Domain, { exits, ...order }: Order): Hex =>
  digestOfFields(domain, 'PlaceOrder', orderTypes.PlaceOrder, { ...order, exitsHash: hashExits(exits) })

/** Returns the digest that the signer signs to cancel an order. */
export const cancellationDigestOf = (domain: Domain, cancellation: CancelOrder): Hex =>
  digestOfFields(domain, 'CancelOrder', orderTypes.CancelOrder, cancellation)
