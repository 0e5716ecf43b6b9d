import {
  type AgentBook,
  bookTrade,
  EMPTY_BOOK,
  parseBook,
  promoteBook,
  serializeBook,
} from '@agent-trading-service/protocol/agent-book'
import { compareLogPositions, type Trade } from '@agent-trading-service/protocol/trade-events'
import type { Hex } from 'viem'
import type { ContractEvent } from './events.ts'
import { chunkKeys, defineTable, type RowOf, readBatch, readRows, type SqlRow } from './table.ts'

const digits = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

const columns = {
  agent_id: (trade: Trade) => Number(trade.agentId),
  block: (trade: Trade) => Number(trade.blockNumber),
  log_index: (trade: Trade) => trade.logIndex,
  position_id: (trade: Trade) => Number(trade.positionId),
  type: (trade: Trade) => trade.type,
  source: (trade: Trade) => trade.source,
  token: (trade: Trade) => trade.token,
  vault: (trade: Trade) => trade.vault,
  usdc_amount: (trade: Trade) => digits(trade.usdcAmount),
  token_amount: (trade: Trade) => digits(trade.tokenAmount),
  price_usdc: (trade: Trade) => digits(trade.priceUsdc),
  realized_pnl_usdc: (trade: Trade) => digits(trade.realizedPnlUsdc),
  position_pnl_usdc: (trade: Trade) => digits(trade.positionPnlUsdc),
  oracle_value_usdc: (trade: Trade) => digits(trade.oracleValueUsdc),
  exit_bps: (trade: Trade) => trade.exitBps ?? null,
  rule_index: (trade: Trade) => trade.ruleIndex ?? null,
  trigger_type: (trade: Trade) => trade.rule?.triggerType ?? null,
  trigger_bps: (trade: Trade) => (trade.rule ? Number(trade.rule.triggerBps) : null),
  transaction_hash: (trade: Trade) => trade.transactionHash,
  timestamp: (trade: Trade) => Number(trade.timestamp),
  capital_mode: (trade: Trade) => trade.capitalMode ?? null,
}

/** A row of `trades`, with the note of the table of notes. */
export type TradeRow = RowOf<typeof columns> & { note?: string | null }

/** The columns of `TradeRow` without the note. */
export const TRADE_COLUMNS = Object.keys(columns).join(', ')

/**
 * Selects `TradeRow`s from a query of rows of `trades`, which has the order only with a LIMIT. The trade of an intent
 * has its note, and that of an order the note of the order, whose event is the first one after the trade's.
 */
export const withNotes = (
  rows: string,
): string => `SELECT page.*, (SELECT note FROM notes WHERE transaction_hash = CASE source
    WHEN 'intent' THEN page.transaction_hash
    WHEN 'order' THEN (SELECT transaction_hash FROM orders WHERE order_id = (SELECT args ->> 'orderId' FROM events
      WHERE block = page.block AND log_index > page.log_index AND name = 'OrderExecuted' ORDER BY log_index LIMIT 1))
    END) AS note FROM (${rows}) AS page`

const NOTES = `SELECT transaction_hash AS hash, note FROM notes
  WHERE transaction_hash IN (SELECT value FROM json_each(?1))`

/** Reads what signers said, by the transaction that executes their intent. */
export async function readNotes(db: D1Database, transactionHashes: readonly Hex[]): Promise<Map<Hex, string>> {
  if (transactionHashes.length === 0) return new Map()
  const rows = await readRows<{ hash: Hex; note: string }>(db, NOTES, JSON.stringify(transactionHashes))
  return new Map(rows.map(({ hash, note }) => [hash, note]))
}

const CLOSINGS = `SELECT position_id AS id, timestamp FROM trades INDEXED BY trades_closed
  WHERE agent_id = ?1 AND position_id IN (SELECT value FROM json_each(?2)) AND position_pnl_usdc IS NOT NULL`

/** Reads when positions of an agent were closed, in Unix seconds, of those that are. No position has the id 0. */
export async function readClosings(
  db: D1Database,
  agentId: bigint | undefined,
  positionIds: readonly bigint[],
): Promise<Map<bigint, bigint>> {
  const known = positionIds.filter(id => id > 0n).map(Number)
  if (agentId === undefined || known.length === 0) return new Map()
  const rows = await readRows<{ id: number; timestamp: number }>(db, CLOSINGS, Number(agentId), JSON.stringify(known))
  return new Map(rows.map(({ id, timestamp }) => [BigInt(id), BigInt(timestamp)]))
}

/** A trade, and what the agent's trades add up to after it. */
export type BookedTrade = Trade & { book: AgentBook }

export const tradesTable = defineTable<BookedTrade>('trades', { ...columns, book: ({ book }) => serializeBook(book) })

const LAST_BOOKS = `SELECT value AS agentId, book, EXISTS (
    SELECT 1 FROM events INDEXED BY events_caps
    WHERE agent_id = value AND name IN ('AllocationCreated', 'AllocationCapUpdated', 'AgentPromoted')
      AND name = 'AgentPromoted' AND (events.block, events.log_index) > (trades.block, trades.log_index)
  ) AS isPromoted
  FROM json_each(?1) CROSS JOIN trades ON trades.agent_id = value AND (block, log_index) = (
    SELECT block, log_index FROM trades WHERE agent_id = value ORDER BY block DESC, log_index DESC LIMIT 1)`

/** Reads what the indexed trades of agents, and promotions after them, add up to. Those without trades are left out. */
async function readBooks(db: D1Database, agentIds: readonly number[]): Promise<Map<number, AgentBook>> {
  const pages = chunkKeys(agentIds).map(page => db.prepare(LAST_BOOKS).bind(JSON.stringify(page)))
  const rows = (await readBatch(db, pages)).flat() as { agentId: number; book: string; isPromoted: number }[]
  return new Map(
    rows.map(({ agentId, book, isPromoted }) => [agentId, isPromoted ? promoteBook(parseBook(book)) : parseBook(book)]),
  )
}

/**
 * Adds to each trade, oldest first, what its agent's trades add up to after it. `events` has the promotions in between.
 */
export async function bookTrades(
  db: D1Database,
  trades: readonly Trade[],
  events: readonly ContractEvent[],
): Promise<BookedTrade[]> {
  const books = await readBooks(db, [...new Set(trades.map(({ agentId }) => Number(agentId)))])
  const promotions = events.filter(({ name }) => name === 'AgentPromoted')
  const placeOf = ({ block, logIndex }: ContractEvent) => ({ blockNumber: BigInt(block), logIndex })
  return trades.map(trade => {
    const agentId = Number(trade.agentId)
    let before = books.get(agentId) ?? EMPTY_BOOK
    while (promotions[0] !== undefined && compareLogPositions(placeOf(promotions[0]), trade) < 0) {
      const promoted = promotions.shift()?.agentId ?? -1
      books.set(promoted, promoteBook(books.get(promoted) ?? EMPTY_BOOK))
      before = books.get(agentId) ?? EMPTY_BOOK
    }
    const book = bookTrade(before, trade)
    books.set(agentId, book)
    return { ...trade, book }
  })
}

const MAX_RECENT_TRADES = 5_000
const RECENT_AGENTS = `SELECT DISTINCT agent_id AS agentId FROM
  (SELECT agent_id, timestamp FROM trades ORDER BY block DESC, log_index DESC LIMIT ${MAX_RECENT_TRADES})
  WHERE timestamp >= ?1`

/** Reads the agents of the newest trades since a time in Unix seconds. */
export async function readAgentsTradedSince(db: D1Database, timestamp: number): Promise<number[]> {
  const rows = await readRows<{ agentId: number }>(db, RECENT_AGENTS, timestamp)
  return rows.map(({ agentId }) => agentId)
}

export const toTrades = (rows: readonly SqlRow[] = []): Trade[] => (rows as TradeRow[]).map(toTrade)

export function toTrade(row: TradeRow): Trade {
  const { usdc_amount, token_amount, price_usdc, realized_pnl_usdc, exit_bps, rule_index, trigger_type } = row
  return {
    agentId: BigInt(row.agent_id),
    blockNumber: BigInt(row.block),
    logIndex: row.log_index,
    positionId: BigInt(row.position_id),
    type: row.type,
    source: row.source,
    token: row.token,
    vault: row.vault,
    ...(row.capital_mode !== null && { capitalMode: row.capital_mode }),
    ...(usdc_amount !== null && { usdcAmount: BigInt(usdc_amount) }),
    ...(token_amount !== null && { tokenAmount: BigInt(token_amount) }),
    ...(price_usdc !== null && { priceUsdc: BigInt(price_usdc) }),
    ...(realized_pnl_usdc !== null && { realizedPnlUsdc: BigInt(realized_pnl_usdc) }),
    ...(row.position_pnl_usdc !== null && { positionPnlUsdc: BigInt(row.position_pnl_usdc) }),
    ...(row.oracle_value_usdc !== null && { oracleValueUsdc: BigInt(row.oracle_value_usdc) }),
    ...(exit_bps !== null && { exitBps: exit_bps }),
    ...(rule_index !== null && { ruleIndex: rule_index }),
    ...(trigger_type !== null && {
      rule: { triggerType: trigger_type, triggerBps: BigInt(row.trigger_bps ?? 0), exitBps: exit_bps ?? 0 },
    }),
    ...(row.note != null && { note: row.note }),
    transactionHash: row.transaction_hash,
    timestamp: BigInt(row.timestamp),
  }
}
