import type { Address, Hex } from 'viem'
import { type ContractEvent, type EventRow, toContractEvent } from '../history/tables/events.ts'
import { type TradeRow, toTrade } from '../history/tables/trades.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { IndexPosition, IndexReorg } from './store.ts'

/** Changes in the index that are not in the event log yet. */
export type IndexChanges =
  /** The log has not started; it starts at this block. */
  | { kind: 'start'; block: number; hash: Hex; reorg: number }
  | { kind: 'reorgs'; reorgs: IndexReorg[] }
  /**
   * Trades, events of owners, agents whose allocation or track changed, and tokens with new prices. `isComplete` is
   * false if more trades or events follow.
   */
  | {
      kind: 'events'
      block: number
      hash: Hex
      timestamp: number
      trades: Trade[]
      ownerEvents: ContractEvent[]
      reallocatedAgents: number[]
      pricedTokens: Address[]
      isComplete: boolean
    }

/** The log starts only once the index is this close to the head: trades of a backfill are not events. */
const MAX_START_LAG_BLOCKS = 256
const ROWS_PER_READ = 500

/**
 * Reads the changes of the index after a position, in one snapshot. Returns undefined if the index has no data of these
 * contracts, or is still in its first backfill.
 */
export async function readIndexChanges(
  db: D1Database,
  indexKey: string,
  position: IndexPosition | undefined,
): Promise<IndexChanges | undefined> {
  const { block = -1, logIndex = 0, reorg = 0 } = position ?? {}
  const session = db.withSession('first-primary') // a replica may lack the latest writes
  const [cursors, reorgs, ownBlock, trades, owners, reallocated, prices] = await session
    .batch<Record<string, unknown>>([
      session.prepare('SELECT scope, block, hash, timestamp, head, (SELECT max(id) FROM reorgs) AS reorg FROM cursor'),
      session.prepare('SELECT id, ancestor, lost FROM reorgs WHERE id > ?1 ORDER BY id').bind(reorg),
      session.prepare('SELECT hash FROM blocks WHERE number = ?1').bind(block),
      session
        // Rows above the cursor are leftovers from before the cursor was dropped; the indexer writes them again.
        .prepare(
          `SELECT * FROM trades WHERE (block, log_index) > (?1, ?2) AND block <= (SELECT block FROM cursor)
          ORDER BY block, log_index LIMIT ?3`,
        )
        .bind(block, logIndex, block < 0 ? 0 : ROWS_PER_READ),
      session
        .prepare(
          `SELECT * FROM events WHERE (block, log_index) > (?1, ?2) AND block <= (SELECT block FROM cursor)
          AND name IN (${OWNER_EVENT_NAMES}) ORDER BY block, log_index LIMIT ?3`,
        )
        .bind(block, logIndex, block < 0 ? 0 : ROWS_PER_READ),
      session
        .prepare(
          `SELECT DISTINCT agent_id FROM events WHERE (block, log_index) > (?1, ?2) AND ?1 >= 0
          AND block <= (SELECT block FROM cursor) AND name IN (${REALLOCATION_EVENT_NAMES})`,
        )
        .bind(block, logIndex),
      session
        .prepare(
          'SELECT DISTINCT token FROM prices WHERE block > ?1 AND ?1 >= 0 AND block <= (SELECT block FROM cursor)',
        )
        .bind(block),
    ])
    .catch(emptyIfNoTables)
  const cursor = cursors?.results[0] as CursorWithReorg | undefined
  if (cursor === undefined || cursor.scope !== indexKey) return undefined
  if (position === undefined || block < 0) {
    if (cursor.head - cursor.block > MAX_START_LAG_BLOCKS) return undefined
    return { kind: 'start', block: cursor.block, hash: cursor.hash, reorg: cursor.reorg ?? 0 }
  }
  if (reorgs && reorgs.results.length > 0) return { kind: 'reorgs', reorgs: reorgs.results as IndexReorg[] }
  const hash = ownBlock?.results[0]?.hash
  // The index was rebuilt without a reorg row, so no sent event belongs to this chain.
  if (cursor.block < block || (position.hash !== undefined && hash !== undefined && hash !== position.hash))
    return { kind: 'reorgs', reorgs: [{ id: reorg, ancestor: -1, lost: block }] }
  const tradeRows = (trades?.results ?? []) as TradeRow[]
  const eventRows = (owners?.results ?? []) as EventRow[]
  // If one list is full, the others are cut at its end; the rest comes with the next read.
  const full = [tradeRows, eventRows].filter(({ length }) => length === ROWS_PER_READ)
  const ends = full.flatMap(rows => rows.at(-1) ?? [])
  const isRead = (row: LogRow) => ends.every(end => compareRows(row, end) <= 0)
  return {
    kind: 'events',
    block: cursor.block,
    hash: cursor.hash,
    timestamp: cursor.timestamp,
    trades: tradeRows.filter(isRead).map(toTrade),
    ownerEvents: eventRows.filter(isRead).map(toContractEvent),
    reallocatedAgents: (reallocated?.results ?? []).flatMap(({ agent_id }) => (agent_id as number | null) ?? []),
    pricedTokens: (prices?.results ?? []).map(({ token }) => token as Address),
    isComplete: full.length === 0,
  }
}

/** Events that change who controls an agent, or what its owner allows. */
const OWNER_EVENT_NAMES = [
  'MandateUpdated',
  'BuyingStopped',
  'CloseAllStarted',
  'CloseAllEnded',
  'OwnershipOffered',
  'AgentOwnershipTransferred',
  'AgentSignerUpdated',
  'IntentsCancelled',
]
  .map(name => `'${name}'`)
  .join()

/** Events that change an agent's allocation or track, on which its limits depend. */
const REALLOCATION_EVENT_NAMES = ['AllocationCapUpdated', 'AllocationStatusUpdated', 'AgentPromoted']
  .map(name => `'${name}'`)
  .join()

type LogRow = { block: number; log_index: number }

const compareRows = (a: LogRow, b: LogRow): number => a.block - b.block || a.log_index - b.log_index

type CursorWithReorg = {
  scope: string
  block: number
  hash: Hex
  timestamp: number
  head: number
  reorg: number | null
}

/** A database without tables is an empty index. */
function emptyIfNoTables(error: unknown): [] {
  if (error instanceof Error && /no such table/.test(error.message)) return []
  throw error
}
