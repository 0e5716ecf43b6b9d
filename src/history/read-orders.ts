import type { OrderRecord } from '@agent-trading-service/protocol/order-record'
import { OrderEnd } from '@agent-trading-service/protocol/order-typed-data'
import { compareLogPositions, type LogPosition } from '@agent-trading-service/protocol/trade-events'
import type { Address, Hex } from 'viem'
import type { Block, Chain } from '../chain/configured-chain.ts'
import type { Snapshot, SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { type ContractEvent, selectNamed, toContractEvents } from './tables/events.ts'
import { type PlacedOrder, toPlacedOrders } from './tables/orders.ts'
import { readClosings, readNotes } from './tables/trades.ts'

/**
 * Selects orders of an agent, newest first. `deadIds` are orders that the chain shows as void or expired although no
 * event ended them yet: they count as past.
 */
export type OrderQuery = {
  agentId: bigint
  state?: 'open' | 'past' | undefined
  limit: number
  /** Selects orders placed before this position. */
  before?: LogPosition | undefined
  deadIds?: readonly Hex[] | undefined
}

/** Above what an agent can have at a time (`OrderBook.MAX_OPEN_ORDERS`), also if books have replaced each other. */
export const MAX_OPEN_ORDERS = 200

const OPEN = 'SELECT * FROM orders INDEXED BY orders_open WHERE agent_id = ?1 AND is_ended = 0 LIMIT ?2'
const ENDED = `SELECT * FROM orders INDEXED BY orders_ended WHERE agent_id = ?1 AND is_ended = 1
  AND (block, log_index) < (?3, ?4) ORDER BY block DESC, log_index DESC LIMIT ?2`
const ONE = 'SELECT * FROM orders WHERE order_id = ?1 AND agent_id = ?2'
/** Selects the events of a query's orders. */
const eventsOf = (orders: string) => `SELECT * FROM events INDEXED BY events_order
  WHERE name IN ('OrderExecuted', 'OrderEnded') AND args ->> 'orderId' IN (SELECT order_id FROM (${orders}))
  ORDER BY block, log_index`

type OrderSources = { snapshots: SnapshotReader; chain: Chain; db: D1Database }

/**
 * Reads a page of an agent's orders, newest first, complete up to `asOf`. `next` is the position before which there are
 * more. Throws HISTORY_UNAVAILABLE.
 */
export async function readOrders(
  { snapshots, chain, db }: OrderSources,
  { agentId, state, limit, before, deadIds = [] }: OrderQuery,
  head: Promise<Block>,
): Promise<{ orders: OrderRecord[]; next: LogPosition | undefined } & SnapshotFacts> {
  const place = [Number(before?.blockNumber ?? Number.MAX_SAFE_INTEGER), before?.logIndex ?? 0]
  const { results, facts } = await snapshots.readSnapshot(head, session => [
    ...[OPEN, eventsOf(OPEN)].map(sql => session.prepare(sql).bind(Number(agentId), MAX_OPEN_ORDERS)),
    ...[ENDED, eventsOf(ENDED)].map(sql => session.prepare(sql).bind(Number(agentId), limit + 1, ...place)),
    selectNamed(session, chain),
  ])
  const records = recordsOf(results, { orders: [0, 2], events: [1, 3] })
  const isOpen = ({ orderId, order, executions, end }: OrderRecord) =>
    end === null && executions.length < order.parts && !deadIds.includes(orderId)
  const matching = records
    .filter(record => before === undefined || compareLogPositions(record, before) < 0)
    .filter(record => state === undefined || isOpen(record) === (state === 'open'))
    .sort((one, other) => compareLogPositions(other, one))
  const orders = await complete(db, matching.slice(0, limit))
  return { orders, next: matching.length > limit ? orders.at(-1) : undefined, ...facts }
}

/** Reads an order of an agent; `order` is undefined if there is none. Throws as `readOrders` does. */
export async function readOrder(
  { snapshots, chain, db }: OrderSources,
  { agentId, orderId }: { agentId: bigint; orderId: Hex },
  head: Promise<Block>,
): Promise<{ order: OrderRecord | undefined } & SnapshotFacts> {
  const { results, facts } = await snapshots.readSnapshot(head, session => [
    ...[ONE, eventsOf(ONE)].map(sql => session.prepare(sql).bind(orderId, Number(agentId))),
    selectNamed(session, chain),
  ])
  const [order] = await complete(db, recordsOf(results, { orders: [0], events: [1] }))
  return { order, ...facts }
}

/** Adds what the signers of an agent's orders said, and when the positions of open orders were closed. */
async function complete(db: D1Database, orders: readonly OrderRecord[]): Promise<OrderRecord[]> {
  const positionOf = ({ order, executions, end }: OrderRecord) =>
    end === null && executions.length < order.parts ? (executions.at(-1)?.positionId ?? order.positionId) : 0n
  const [notes, closings] = await Promise.all([
    readNotes(
      db,
      orders.map(({ transactionHash }) => transactionHash),
    ),
    readClosings(db, orders[0]?.order.agentId, [...new Set(orders.map(positionOf))]),
  ])
  return orders.map(order => ({
    ...order,
    note: notes.get(order.transactionHash),
    positionClosedAt: closings.get(positionOf(order)),
  }))
}

/**
 * Returns orders with what became of them, unsorted. `indexes` says which of the results have orders and events; the
 * last one has the contracts that were named.
 */
function recordsOf(results: Snapshot['results'], indexes: { orders: number[]; events: number[] }): OrderRecord[] {
  const rowsOf = (some: number[]) => some.flatMap(index => results[index] ?? [])
  const events = toContractEvents(rowsOf(indexes.events))
  const byOrder = Map.groupBy(events, ({ args }) => args.orderId)
  const named = toContractEvents(results.at(-1))
  const books = named.filter(({ name }) => name === 'OrderBookUpdated')
  const placed = toPlacedOrders(rowsOf(indexes.orders))
  return placed.map(order => toRecord(order, byOrder.get(order.orderId) ?? [], books))
}

/** `books` has the events that named the order books. The next one after its placement voids an order. */
function toRecord(
  { block, timestamp, ...placed }: PlacedOrder,
  events: readonly ContractEvent[],
  books: readonly ContractEvent[],
): OrderRecord {
  const executed = events.filter(({ name }) => name === 'OrderExecuted')
  const ended = events.find(({ name }) => name === 'OrderEnded')
  const replaced = books.find(book => book.block > block || (book.block === block && book.logIndex > placed.logIndex))
  const end = ended ?? (executed.length < placed.order.parts ? replaced : undefined)
  return {
    ...placed,
    blockNumber: BigInt(block),
    timestamp: BigInt(timestamp),
    executions: executed.map(({ args, ...event }) => ({
      part: Number(args.part),
      amount: BigInt(args.amount as string),
      positionId: BigInt(args.positionId as string),
      keeper: args.keeper as Address,
      ...placeOf(event),
    })),
    end: end === undefined ? null : { reason: Number(end.args.reason ?? OrderEnd.Voided), ...placeOf(end) },
  }
}

const placeOf = ({
  block,
  timestamp,
  transactionHash,
}: Pick<ContractEvent, 'block' | 'timestamp' | 'transactionHash'>) => ({
  blockNumber: BigInt(block),
  timestamp: BigInt(timestamp),
  transactionHash,
})
