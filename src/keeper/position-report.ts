import { OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import type { LaneStatus } from '../executor/object.ts'
import type { OrderReport } from '../resources/order.ts'
import { type Book, marketKey } from './book.ts'
import { NEVER } from './order-entry.ts'
import type { Evaluation, ExitOutcome } from './position-entry.ts'

/** What the keeper knows about one position. Each part is undefined until there is something to report. */
export type PositionReport = { evaluation: Evaluation | undefined; outcome: ExitOutcome | undefined }

/**
 * Returns what the keeper knows about a position; undefined if it never saw the position, or deleted its entry after
 * the position closed.
 */
export function findPositionReport(book: Book, positionId: bigint): PositionReport | undefined {
  const entry = book.entry(positionId)
  if (entry === undefined) return undefined
  const { closedAt, token, evaluation, outcome } = entry
  const cycle = book.lastCycle()
  const price = cycle?.prices[token]
  if (closedAt !== null || cycle === undefined || price === undefined) return { evaluation, outcome }
  const { blockNumber, at, deferrals } = cycle
  const isInFlight = book.batches().some(({ positionIds }) => positionIds.includes(positionId))
  // An exit that waits for its next try is reached.
  const isWaiting = isInFlight || entry.nextTryAt > Math.max(Date.now(), Number(at) * 1_000)
  return {
    evaluation: { blockNumber, price, at },
    outcome: deferrals[marketKey(entry)] ?? outcome ?? (isWaiting ? undefined : { kind: 'notReached', at }),
  }
}

/**
 * Returns what the keeper knows about an open order; undefined if it does not know the order. The trigger has 8
 * decimals, and is null for an order without a price and 0 for a trailing stop that is not active yet.
 */
export function findOrderReport(
  { orders: table }: Book,
  orderId: Hex,
): (OrderReport & { trigger: bigint | null }) | undefined {
  const entry = table.entry(orderId)
  if (entry === undefined) return undefined
  const { order, trigger = null, wakesAt, refusal = null } = entry
  const isTimed = wakesAt !== null && wakesAt > 0 && wakesAt < NEVER
  return {
    nextTryAt: isTimed ? BigInt(wakesAt) : null,
    lastRefusal: refusal,
    trigger: order.condition === OrderCondition.Trailing ? trigger : order.price || null,
    isInFlight: table.batches().some(({ orders }) => orders.some(each => each.orderId === orderId)),
  }
}

export type KeeperStatus = {
  /** The last cycle; `at` is its block's time in Unix seconds. */
  lastEvaluation: { blockNumber: string; at: string } | undefined
  openPositions: number
  /** The number of positions whose exit is in flight. */
  pendingExits: number
  openOrders: number
  /** The number of orders that a transaction in flight executes, raises or ends. */
  pendingOrders: number
  /** The lane of the keeper's account. */
  lanes: LaneStatus[]
}

/** Returns what readiness reports about the keeper. */
export function keeperStatusOf(book: Book, lanes: LaneStatus[]): KeeperStatus {
  const cycle = book.lastCycle()
  return {
    lastEvaluation: cycle && { blockNumber: cycle.blockNumber, at: cycle.at },
    openPositions: book.openCount(),
    pendingExits: book.batches().flatMap(({ positionIds }) => positionIds).length,
    openOrders: book.orders.count(),
    pendingOrders: book.orders.batches().flatMap(({ orders }) => orders).length,
    lanes,
  }
}
