import { type Order, parseOrder, serializeOrder } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import type { ContractEvent } from './events.ts'
import { defineTable } from './table.ts'

/** An order as it was placed. These facts never change. */
export type PlacedOrder = {
  orderId: Hex
  order: Order
  block: number
  logIndex: number
  transactionHash: Hex
  timestamp: number
}

/** A trigger of the database sets `is_ended`, which is not a fact of the placement. */
export const ordersTable = defineTable<PlacedOrder>('orders', {
  order_id: ({ orderId }) => orderId,
  agent_id: ({ order }) => Number(order.agentId),
  content: ({ order }) => serializeOrder(order),
  parts: ({ order }) => order.parts,
  block: ({ block }) => block,
  log_index: ({ logIndex }) => logIndex,
  transaction_hash: ({ transactionHash }) => transactionHash,
  timestamp: ({ timestamp }) => timestamp,
})

/** A row of `orders`. */
export type OrderRow = {
  order_id: Hex
  content: string
  block: number
  log_index: number
  transaction_hash: Hex
  timestamp: number
}

/** Returns the order of a row. */
export const toPlacedOrder = (row: OrderRow): PlacedOrder => ({
  orderId: row.order_id,
  order: parseOrder(row.content),
  block: row.block,
  logIndex: row.log_index,
  transactionHash: row.transaction_hash,
  timestamp: row.timestamp,
})

/** Returns the order of its event `OrderPlaced`. */
export const placedOrderOf = ({ args, block, logIndex, transactionHash, timestamp }: ContractEvent): PlacedOrder => ({
  orderId: args.orderId as Hex,
  order: parseOrder(JSON.stringify(args.order)),
  block,
  logIndex,
  transactionHash,
  timestamp,
})

const OPEN_ORDERS = `SELECT * FROM orders INDEXED BY orders_open WHERE is_ended = 0 AND (agent_id, block, log_index) > (?1, ?2, ?3)
  ORDER BY agent_id, block, log_index LIMIT ?4`

/** Reads the orders that have not ended after one of them, by agent. Without `after` it starts with the first. */
export async function readOpenOrders(
  db: D1Database,
  { after, limit }: { after: PlacedOrder | undefined; limit: number },
): Promise<PlacedOrder[]> {
  const { results } = await db
    .prepare(OPEN_ORDERS)
    .bind(Number(after?.order.agentId ?? 0), after?.block ?? -1, after?.logIndex ?? -1, limit)
    .all<OrderRow>()
  return results.map(toPlacedOrder)
}
