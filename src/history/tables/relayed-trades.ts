import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Hex } from 'viem'
import { defineTable } from './table.ts'
import { type TradeRow, toTrade, toTradeRow } from './trades.ts'

/** A trade from a receipt of the service's own transactions, above the cursor. The hash names the branch it is on. */
export type RelayedTrade = { trade: Trade; blockHash: Hex }

/** A row of `relayed`. `trade` is a TradeRow as JSON. */
type RelayedTradeRow = { block: number; block_hash: Hex; trade: string }

export const relayedTradesTable = defineTable<RelayedTrade>(
  'relayed',
  {
    agent_id: ({ trade }) => Number(trade.agentId),
    block: ({ trade }) => Number(trade.blockNumber),
    log_index: ({ trade }) => trade.logIndex,
    block_hash: ({ blockHash }) => blockHash,
    trade: ({ trade }) => JSON.stringify(toTradeRow(trade)),
  },
  // The same transaction, now in another block.
  'UPDATE SET block_hash = excluded.block_hash, trade = excluded.trade',
)

/** How many of an agent's newest relayed trades are read. */
const MAX_RELAYED_TRADES = 100

/** Returns a query for an agent's relayed trades. */
export const selectRelayedTrades = (db: Pick<D1Database, 'prepare'>, agentId: bigint): D1PreparedStatement =>
  db
    .prepare('SELECT block, block_hash, trade FROM relayed WHERE agent_id = ? ORDER BY block DESC LIMIT ?')
    .bind(Number(agentId), MAX_RELAYED_TRADES)

/** Returns the relayed trade of a row of `selectRelayedTrades`. */
export function toRelayedTrade(row: Record<string, unknown>): RelayedTrade {
  const { block_hash, trade } = row as RelayedTradeRow
  return { trade: toTrade(JSON.parse(trade) as TradeRow), blockHash: block_hash }
}

/** Returns a statement that deletes the trades that the cursor has reached; the chain's own rows replace them. */
export const deleteReachedTrades = (db: D1Database, cursorBlock: number): D1PreparedStatement =>
  db.prepare('DELETE FROM relayed WHERE block <= ?1').bind(cursorBlock)
