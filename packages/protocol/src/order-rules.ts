import { type Order, OrderCondition, OrderSide } from './order-typed-data.ts'
import { LAST_ORDER_SECOND, MAX_ORDER_PARTS } from './order-types.ts'
import { signingTypes } from './typed-data.ts'

const BPS = 10_000n
const MAX_RULES = 5
const MIN_INTERVAL = 60n
const UINT96_END = 1n << 96n

/** The fields of an order, in the order in which the contract counts them. */
export const ORDER_FIELDS = signingTypes.PlaceOrder.map(({ name }) => (name === 'exitsHash' ? 'exits' : name))
type OrderField = (typeof ORDER_FIELDS)[number]

export const isBuy = ({ side }: Pick<Order, 'side'>): boolean => side !== OrderSide.Reduce

/** Whether an order executes when the price falls. */
export const isFallOrder = ({ condition }: Pick<Order, 'condition'>): boolean =>
  condition === OrderCondition.AtOrBelow || condition === OrderCondition.Trailing

/**
 * Returns the first field that the order book refuses at a time in Unix seconds (`InvalidOrder`); undefined if it takes
 * them all.
 */
export function findOrderProblem(order: Order, now: bigint): { field: OrderField; value: bigint } | undefined {
  const buys = isBuy(order)
  const opens = order.side === OrderSide.Open
  const isTrailing = order.condition === OrderCondition.Trailing
  const hasPrice = order.condition === OrderCondition.AtOrBelow || order.condition === OrderCondition.AtOrAbove
  const isLadder = order.exits.length > 0 && order.exits.length <= MAX_RULES
  const isShare = order.exitBps >= order.parts && BigInt(order.exitBps) <= BPS
  const isTrail = order.trailBps > 0 && BigInt(order.trailBps) < BPS
  const isPrice = order.price < UINT96_END && (isTrailing || order.price > 0n === hasPrice)
  const isInterval = order.interval >= MIN_INTERVAL && order.interval <= order.validUntil - now
  const rules: [OrderField, boolean, bigint | number][] = [
    ['side', order.side <= OrderSide.Reduce, order.side],
    ['positionId', opens === (order.positionId === 0n), order.positionId],
    ['usdcAmount', buys ? order.usdcAmount >= BigInt(order.parts) : order.usdcAmount === 0n, order.usdcAmount],
    ['exitBps', buys ? order.exitBps === 0 : isShare, order.exitBps],
    ['exits', opens ? isLadder : order.exits.length === 0, order.exits.length],
    ['maxSlippageBps', buys ? BigInt(order.maxSlippageBps) <= BPS : order.maxSlippageBps === 0, order.maxSlippageBps],
    ['condition', order.condition <= OrderCondition.Trailing && !(isTrailing && buys), order.condition],
    ['price', isPrice, order.price],
    ['trailBps', isTrailing ? isTrail : order.trailBps === 0, order.trailBps],
    ['validUntil', order.validUntil >= now && order.validUntil <= LAST_ORDER_SECOND, order.validUntil],
    ['validAfter', order.validAfter <= order.validUntil, order.validAfter],
    ['parts', order.parts >= 1 && order.parts <= MAX_ORDER_PARTS, order.parts],
    ['interval', order.parts === 1 ? order.interval === 0n : isInterval, order.interval],
  ]
  const broken = rules.find(([, isValid]) => !isValid)
  return broken && { field: broken[0], value: BigInt(broken[2]) }
}

/**
 * Returns the price that executes an order, with 8 decimals; undefined if it waits for none, or for its activation: a
 * trailing stop has no peak before it.
 */
export function triggerPrice({ condition, price, trailBps }: Order, peak: bigint): bigint | undefined {
  if (condition === OrderCondition.None) return undefined
  if (condition !== OrderCondition.Trailing) return price
  return peak === 0n ? undefined : (peak * (BPS - BigInt(trailBps))) / BPS
}

/** Returns what a part of a purchase spends, in USDC base units. The last part has the rest. `part` counts from 1. */
export function partUsdcAmount({ usdcAmount, parts }: Pick<Order, 'usdcAmount' | 'parts'>, part: number): bigint {
  const each = usdcAmount / BigInt(parts)
  return part === parts ? usdcAmount - each * BigInt(parts - 1) : each
}

/**
 * Returns the share of what is left that a part of a reduction sells, in basis points. It brings the sum of all parts
 * to the order's share so far. `part` counts from 1.
 */
export function partExitBps({ exitBps, parts }: Pick<Order, 'exitBps' | 'parts'>, part: number): number {
  const soldAfter = (count: number) => Math.floor((exitBps * count) / parts)
  const left = 10_000 - soldAfter(part - 1)
  return Math.round(((soldAfter(part) - soldAfter(part - 1)) * 10_000) / left)
}
