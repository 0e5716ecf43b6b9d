import type { Address, Hex } from 'viem'
import { type ContractEvent, type EventRow, toContractEvent } from '../history/tables/events.ts'
import { type TradeRow, toTrade } from '../history/tables/trades.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { IndexPosition, IndexReorg } from './store.ts'

/** What the index has and the event log has not. */
export type IndexChanges =
  /** The log has not started; it starts at this block. */
  | { kind: 'start'; block: number; hash: Hex; reorg: number }
  | { kind: 'reorgs'; reorgs: IndexReorg[] }
  /**
   * Trades, what owners did, the agents whose allocation or track changed, and the tokens with new prices. `isComplete` is false
   * if more trades or events follow.
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
  const session = db.withSession('first-primary') // a replica could miss what was written a moment ago
  const [cursors, reorgs, ownBlock, trades, owners, reallocated, prices] = await session
    .batch<Record<string, unknown>>([
      session.prepare('SELECT scope, block, hash, timestamp, head, (SELECT max(id) FROM reorgs) AS reorg FROM cursor'),
      session.prepare('SELECT id, ancestor, lost FROM reorgs WHERE id > ?1 ORDER BY id').bind(reorg),
      session.prepare('SELECT hash FROM blocks WHERE number = ?1').bind(block),
      session
        // Rows above the cursor are left over from before it was dropped; they are written again below it.
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
  // The index was refilled without a reorg row, so nothing that was sent belongs to this chain.
  if (cursor.block < block || (position.hash !== undefined && hash !== undefined && hash !== position.hash))
    return { kind: 'reorgs', reorgs: [{ id: reorg, ancestor: -1, lost: block }] }
  const tradeRows = (trades?.results ?? []) as TradeRow[]
  const eventRows = (owners?.results ?? []) as EventRow[]
  // A full list ends before the others may: what is above its end comes with the next read.
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

/** What changes who controls an agent, or what its owner lets it do. */
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

/** What changes the allocation or the track of an agent, to which its limits are relative. */
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

/** A database without tables is an index that was never written. */
function emptyIfNoTables(error: unknown): [] {
  if (error instanceof Error && /no such table/.test(error.message)) return []
  throw error
}
