import { type Order, parseOrder, serializeOrder } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import type { ContractEvent } from './events.ts'
import { defineTable, type RowOf, readRows, type SqlRow } from './table.ts'

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
const columns = {
  order_id: ({ orderId }: PlacedOrder) => orderId,
  agent_id: ({ order }: PlacedOrder) => Number(order.agentId),
  content: ({ order }: PlacedOrder) => serializeOrder(order),
  parts: ({ order }: PlacedOrder) => order.parts,
  block: ({ block }: PlacedOrder) => block,
  log_index: ({ logIndex }: PlacedOrder) => logIndex,
  transaction_hash: ({ transactionHash }: PlacedOrder) => transactionHash,
  timestamp: ({ timestamp }: PlacedOrder) => timestamp,
}
export const ordersTable = defineTable('orders', columns)

/** Returns the orders of rows. */
export const toPlacedOrders = (rows: readonly SqlRow[] = []): PlacedOrder[] =>
  (rows as RowOf<typeof columns>[]).map(({ order_id, content, block, log_index, transaction_hash, timestamp }) => ({
    orderId: order_id,
    order: parseOrder(content),
    block,
    logIndex: log_index,
    transactionHash: transaction_hash,
    timestamp,
  }))

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
  const place = [Number(after?.order.agentId ?? 0), after?.block ?? -1, after?.logIndex ?? -1]
  return toPlacedOrders(await readRows(db, OPEN_ORDERS, ...place, limit))
}
