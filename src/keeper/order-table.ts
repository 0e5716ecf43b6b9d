import { type Order, parseOrder, serializeOrder } from '@agent-trading-service/protocol/order-typed-data'
import type { Address, Hex } from 'viem'
import type { PricesOfCall } from '../executor/relay-types.ts'
import { type HeldBy, ISSUER, NEVER, NEXT_PRICE, type OpenOrder, type OrderEntry } from './order-entry.ts'
import { priceText, toPrice } from './price-text.ts'

/** Orders that were handed to the lane in one transaction, and what it does about them. */
export type OrderBatch = {
  digest: Hex
  action: 'execute' | 'raise' | 'record' | 'end'
  book: Address
  orders: OpenOrder[]
  /** The prices that the call brings along. */
  prices?: PricesOfCall | undefined
  /** When it was made, in Unix seconds of the chain. */
  at: number
}

/**
 * The orders that an event may have changed: those with the given ids, of the given positions, and all of the given
 * agents.
 */
type OrderChanges = {
  orderIds?: readonly Hex[]
  positionIds?: readonly bigint[]
  agentIds?: readonly bigint[]
}

// An order sleeps until `wakes_at`; only then a price reaches it. So a cycle reads neither orders whose price is far
// nor those that wait for their time, however many there are.
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS open_order (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent INTEGER NOT NULL, position INTEGER NOT NULL, token TEXT NOT NULL,
    below TEXT, above TEXT, raises_at TEXT, is_unchecked INTEGER NOT NULL, wakes_at INTEGER, ends_at INTEGER NOT NULL, content TEXT NOT NULL,
    state TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS order_unchecked ON open_order (seq) WHERE is_unchecked = 1;
  CREATE INDEX IF NOT EXISTS order_asleep ON open_order (wakes_at) WHERE wakes_at >= 0;
  CREATE INDEX IF NOT EXISTS order_next_price ON open_order (token) WHERE wakes_at = ${NEXT_PRICE};
  CREATE INDEX IF NOT EXISTS order_held ON open_order (token) WHERE wakes_at = ${ISSUER};
  CREATE INDEX IF NOT EXISTS order_below ON open_order (token, below) WHERE wakes_at IS NULL;
  CREATE INDEX IF NOT EXISTS order_above ON open_order (token, above) WHERE wakes_at IS NULL AND above IS NOT NULL;
  CREATE INDEX IF NOT EXISTS order_raise ON open_order (token, raises_at) WHERE raises_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS order_end ON open_order (ends_at);
  CREATE INDEX IF NOT EXISTS order_agent ON open_order (agent);
  CREATE INDEX IF NOT EXISTS order_position ON open_order (position) WHERE position > 0;
  CREATE TABLE IF NOT EXISTS order_token (token TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS order_batch (digest TEXT PRIMARY KEY, batch TEXT NOT NULL) WITHOUT ROWID;
`

type Row = Record<string, SqlStorageValue>

/** Opens the part of the keeper's book that has the open orders. Every function is synchronous. */
export function openOrderTable(sql: SqlStorage) {
  sql.exec(SCHEMA)
  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<Row>(query, ...bindings).toArray()
  const entries = (query: string, ...bindings: SqlStorageValue[]) => rows(query, ...bindings).map(toEntry)
  const FROM_OPEN = 'SELECT * FROM open_order INDEXED BY'
  let count = Number(rows('SELECT count(*) AS count FROM open_order')[0]?.count ?? 0)
  /** The last order that `nextInTurn` returned. */
  let lastInTurn = 0

  const entry = (orderId: Hex): OrderEntry | undefined => entries('SELECT * FROM open_order WHERE id = ?', orderId)[0]

  function remove(orderId: Hex) {
    if (entry(orderId) === undefined) return
    count--
    sql.exec('DELETE FROM open_order WHERE id = ?', orderId)
    if (count === 0) sql.exec('DELETE FROM order_token')
  }

  function put(entry: OrderEntry) {
    const { orderId, order, positionId, triggers, raisesAt, isUnchecked, wakesAt, endsAt, ...state } = entry
    if (rows('SELECT 1 FROM open_order WHERE id = ?', orderId).length === 0) count++
    sql.exec('INSERT OR IGNORE INTO order_token (token) VALUES (?)', order.token)
    sql.exec(
      `INSERT INTO open_order (id, agent, position, token, below, above, is_unchecked, wakes_at, ends_at, content, state,
           raises_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (id) DO UPDATE SET position = ?3, below = ?5, above = ?6, is_unchecked = ?7, wakes_at = ?8,
           ends_at = ?9, state = ?11, raises_at = ?12`,
      orderId,
      Number(order.agentId),
      Number(positionId),
      order.token,
      priceText(triggers.below),
      priceText(triggers.above),
      isUnchecked ? 1 : 0,
      wakesAt,
      endsAt,
      serializeOrder(order),
      JSON.stringify({ ...state, trigger: state.trigger === undefined ? undefined : `${state.trigger}` }),
      priceText(raisesAt),
    )
  }

  return {
    count: () => count,
    entry,
    put,
    remove,

    /** Returns the tokens of open orders. */
    tokens: (): Address[] => rows('SELECT token FROM order_token').map(({ token }) => token as Address),

    /** Makes the next cycles simulate the orders that may have changed. */
    mark({ orderIds = [], positionIds = [], agentIds = [] }: OrderChanges) {
      for (const [column, values] of [
        ['id', orderIds],
        ['position', positionIds.map(Number)],
        ['agent', agentIds.map(Number)],
      ] as const)
        if (values.length > 0)
          sql.exec(
            `UPDATE open_order SET is_unchecked = 1
               WHERE ${column} IN (SELECT value FROM json_each(?1)) ${column === 'position' ? 'AND position > 0' : ''}`,
            JSON.stringify(values),
          )
    },

    /** Makes the next cycles simulate all orders. */
    markAll: () => void sql.exec('UPDATE open_order SET is_unchecked = 1'),

    /** Wakes the orders whose time has come, and those that wait for the next price of the tokens. */
    wake(now: number, newlyPriced: readonly Address[]) {
      sql.exec('UPDATE open_order SET wakes_at = NULL WHERE wakes_at >= 0 AND wakes_at <= ?', now)
      for (const token of newlyPriced)
        sql.exec(`UPDATE open_order SET wakes_at = NULL WHERE wakes_at = ${NEXT_PRICE} AND token = ?`, token)
    },

    /** Returns what issuers did that orders wait for, by token and vault. */
    held: (): (HeldBy & { token: Address })[] =>
      rows(
        `SELECT DISTINCT token, json_extract(state, '$.held.vault') AS vault,
           json_extract(state, '$.held.restriction') AS restriction
         FROM open_order INDEXED BY order_held WHERE wakes_at = ${ISSUER}`,
      ).map(row => row as HeldBy & { token: Address }),

    /** Wakes the orders that wait for what an issuer did. */
    wakeHeld({ token, vault, restriction }: HeldBy & { token: Address }) {
      sql.exec(
        `UPDATE open_order SET wakes_at = NULL WHERE wakes_at = ${ISSUER} AND token = ?
           AND json_extract(state, '$.held.vault') = ? AND json_extract(state, '$.held.restriction') = ?`,
        token,
        vault,
        restriction,
      )
    },

    /**
     * Returns the prices that reach an order or raise its peak, and the time at which the next one wakes or ends, in
     * Unix seconds; undefined if an order may need a look at any price.
     */
    waking(): { prices: WakingPrices[]; time: number } | undefined {
      const [busy] = rows(
        `SELECT 1 FROM order_batch
         UNION ALL SELECT 1 FROM open_order WHERE is_unchecked = 1 OR wakes_at IN (${NEXT_PRICE}, ${ISSUER}) LIMIT 1`,
      )
      if (busy !== undefined) return undefined
      const reached = rows(
        `SELECT token, max(below) AS below, min(above) AS above FROM open_order WHERE wakes_at IS NULL GROUP BY token
         UNION ALL SELECT token, NULL, min(raises_at) FROM open_order WHERE raises_at IS NOT NULL GROUP BY token`,
      )
      const [next] = rows('SELECT min(min(ends_at, coalesce(wakes_at, ends_at))) AS time FROM open_order')
      return { prices: reached.map(toWakingPrices), time: Number(next?.time ?? NEVER) }
    },

    /** Returns when the next order wakes, in Unix seconds; NEVER if none does. */
    nextWakeAt: (): number =>
      Number(rows('SELECT min(wakes_at) AS time FROM open_order WHERE wakes_at >= 0')[0]?.time ?? NEVER),

    /** Returns orders of a token that are awake and that its price reaches. */
    reached: (token: Address, price: bigint, limit: number): OrderEntry[] => [
      ...entries(
        `${FROM_OPEN} order_below WHERE wakes_at IS NULL AND token = ? AND below >= ? LIMIT ?`,
        token,
        priceText(price),
        limit,
      ),
      ...entries(
        `${FROM_OPEN} order_above WHERE wakes_at IS NULL AND above IS NOT NULL AND token = ? AND above <= ? LIMIT ?`,
        token,
        priceText(price),
        limit,
      ),
    ],

    /** Returns orders of a token whose peak its price raises, awake or not. */
    raised: (token: Address, price: bigint, limit: number): OrderEntry[] =>
      entries(
        `${FROM_OPEN} order_raise WHERE raises_at IS NOT NULL AND token = ? AND raises_at <= ? LIMIT ?`,
        token,
        priceText(price),
        limit,
      ),

    /** Returns orders that are new or may have changed. */
    unchecked: (limit: number): OrderEntry[] =>
      entries(`${FROM_OPEN} order_unchecked WHERE is_unchecked = 1 ORDER BY seq LIMIT ?`, limit),

    /** Returns the orders that have expired or were found dead, the earliest first. */
    ended: (now: number, limit: number): OrderEntry[] =>
      entries(`${FROM_OPEN} order_end WHERE ends_at <= ? ORDER BY ends_at LIMIT ?`, now, limit),

    /** Returns the next orders of a slow comparison of all with the chain; after the last one it starts over. */
    nextInTurn(limit: number): OrderEntry[] {
      const next = rows('SELECT * FROM open_order WHERE seq > ? ORDER BY seq LIMIT ?', lastInTurn, limit)
      lastInTurn = next.length < limit ? 0 : Number(next.at(-1)?.seq)
      return next.map(toEntry)
    },

    /** Records a batch before it is handed to the lane. */
    addBatch(batch: OrderBatch) {
      const orders = batch.orders.map(({ orderId, order }) => ({ orderId, order: serializeOrder(order) }))
      const stored = JSON.stringify({ ...batch, orders })
      sql.exec('INSERT INTO order_batch (digest, batch) VALUES (?, ?)', batch.digest, stored)
    },

    /** Returns the batches without a recorded outcome. */
    batches: (): OrderBatch[] =>
      rows('SELECT batch FROM order_batch').map(row => {
        const { orders, ...batch } = JSON.parse(row.batch as string)
        const stored = orders as { orderId: Hex; order: string }[]
        return { ...batch, orders: stored.map(({ orderId, order }) => ({ orderId, order: parseOrder(order) })) }
      }),

    removeBatch(digest: Hex) {
      sql.exec('DELETE FROM order_batch WHERE digest = ?', digest)
    },

    /** Deletes everything: it belongs to a chain that no longer exists. */
    clear() {
      for (const table of ['open_order', 'order_token', 'order_batch']) sql.exec(`DELETE FROM ${table}`)
      count = 0
    },
  }
}

/** The prices (8 decimals) of a token at or below and at or above which something may be due; undefined without any. */
export type WakingPrices = { token: Address; below: bigint | undefined; above: bigint | undefined }

/** Returns the prices in a row of token, the highest price below and the lowest one above. */
export const toWakingPrices = ({ token, below, above }: Row): WakingPrices => ({
  token: token as Address,
  below: toPrice(below),
  above: toPrice(above),
})

function toEntry(row: Row): OrderEntry {
  const { trigger, ...state } = JSON.parse(row.state as string)
  const order: Order = parseOrder(row.content as string)
  return {
    orderId: row.id as Hex,
    order,
    positionId: BigInt(row.position as number),
    triggers: { below: toPrice(row.below), above: toPrice(row.above) },
    raisesAt: toPrice(row.raises_at),
    trigger: trigger === undefined ? undefined : BigInt(trigger),
    isUnchecked: row.is_unchecked === 1,
    wakesAt: row.wakes_at as number | null,
    endsAt: row.ends_at as number,
    placedBlock: 0,
    ...state,
  }
}
