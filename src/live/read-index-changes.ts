import { MULTIPLIER_UPDATED } from '@agent-trading-service/protocol/corporate-actions'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address, Hex } from 'viem'
import { type IndexCursor, selectBranchHash } from '../history/tables/cursor.ts'
import {
  type ContractEvent,
  OWNER_EVENTS,
  type PostedPrice,
  quoted,
  toContractEvents,
  toPostedPrices,
} from '../history/tables/events.ts'
import { type PlacedOrder, toPlacedOrders } from '../history/tables/orders.ts'
import { readBatch } from '../history/tables/table.ts'
import { toTrades, withNotes } from '../history/tables/trades.ts'
import type { IndexPosition, IndexReorg } from './store.ts'

/** Changes in the index that are not in the event log yet. */
export type IndexChanges =
  /** The log has not started; it starts at this block. */
  | { kind: 'start'; block: number; hash: Hex; reorg: number }
  | { kind: 'reorgs'; reorgs: IndexReorg[] }
  /**
   * Trades, orders, events of owners and posted prices up to the end of `block`, and agents whose allocation or track
   * changed. `isComplete` is false if more of them follow; then `hash` is undefined.
   */
  | {
      kind: 'events'
      block: number
      hash: Hex | undefined
      timestamp: number
      trades: Trade[]
      /** Orders that were placed. */
      orders: PlacedOrder[]
      /** Of owners, and of orders after their placement. */
      events: ContractEvent[]
      /** Tokens that announced a change of their multiplier. */
      announcing: Address[]
      reallocatedAgents: number[]
      posts: PostedPrice[]
      isComplete: boolean
    }

/** The log starts only once the index is this close to the head, in blocks or in time: a backfill has no events. */
const MAX_START_LAG_BLOCKS = 256
const MAX_START_LAG_SECONDS = 300
/** A read ends with the block that has this row, because events without a log are numbered at the end of a block. */
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
  const { block = -1, reorg = 0, known } = position ?? {}
  const session = db.withSession('first-primary') // a replica may lack the latest writes
  const after = (sql: string) => session.prepare(sql).bind(block)
  const [cursors, reorgs, knownBlock, trades, orders, events, reallocated, prices, announced] = await readBatch(
    session,
    [
      after(CURSOR),
      session.prepare('SELECT id, ancestor, lost FROM reorgs WHERE id > ?1 ORDER BY id').bind(reorg),
      selectBranchHash(session, known?.block ?? -1),
      after(`${withNotes(`SELECT * FROM trades WHERE ${IS_READ}`)} ${IN_ORDER}`),
      after(`SELECT * FROM orders WHERE ${IS_READ} ${IN_ORDER}`),
      after(`SELECT * FROM events WHERE ${IS_READ} AND name IN (${quoted(AGENT_EVENTS)}) ${IN_ORDER}`),
      after(`SELECT DISTINCT agent_id FROM events WHERE ${IS_INDEXED} AND name IN (${quoted(REALLOCATION_EVENTS)})`),
      after(`SELECT * FROM prices INDEXED BY prices_block WHERE ${IS_READ} ${IN_ORDER}`),
      after(`SELECT DISTINCT contract FROM events WHERE ${IS_INDEXED} AND name = '${MULTIPLIER_UPDATED}'`),
    ],
  ).catch(emptyIfNoTables)
  const cursor = cursors?.[0] as CursorWithReorg | undefined
  if (cursor === undefined || cursor.scope !== indexKey) return undefined
  if (position === undefined || block < 0) {
    const lagSeconds = Date.now() / 1_000 - cursor.timestamp
    if (cursor.head - cursor.block > MAX_START_LAG_BLOCKS && lagSeconds > MAX_START_LAG_SECONDS) return undefined
    return { kind: 'start', block: cursor.block, hash: cursor.hash, reorg: cursor.reorg ?? 0 }
  }
  if (reorgs && reorgs.length > 0) return { kind: 'reorgs', reorgs: reorgs as IndexReorg[] }
  const hash = knownBlock?.[0]?.hash
  // The index was rebuilt without a reorg row, so no sent event belongs to this chain.
  if (cursor.block < block || (known !== undefined && hash !== undefined && hash !== known.hash))
    return { kind: 'reorgs', reorgs: [{ id: reorg, ancestor: -1, lost: block }] }
  const isComplete = cursor.end === cursor.block
  return {
    kind: 'events',
    block: cursor.end,
    hash: isComplete ? cursor.hash : undefined,
    timestamp: cursor.timestamp,
    trades: toTrades(trades),
    orders: toPlacedOrders(orders),
    events: toContractEvents(events),
    reallocatedAgents: (reallocated ?? []).flatMap(({ agent_id }) => (agent_id as number | null) ?? []),
    announcing: (announced ?? []).map(({ contract }) => contract as Address),
    posts: toPostedPrices(prices),
    isComplete,
  }
}

/** What happens to an order after its placement. */
export const ORDER_EVENTS: readonly string[] = ['OrderExecuted', 'OrderEnded']
const AGENT_EVENTS = [...OWNER_EVENTS, ...ORDER_EVENTS]

/** Events that change an agent's allocation or track, on which its limits depend. */
const REALLOCATION_EVENTS = ['AllocationCapUpdated', 'AllocationStatusUpdated', 'AgentPromoted']

/** Whether a row is after block ?1. A log that has not started reads none. */
const IS_NEW = 'block > ?1 AND ?1 >= 0'

/** Selects the block of the last row of a read; none if fewer rows are left. */
const lastBlockOfRead = (source: string) =>
  `SELECT * FROM (SELECT block FROM ${source} ORDER BY block LIMIT 1 OFFSET ${ROWS_PER_READ - 1})`

/**
 * The block at whose end a read after block ?1 ends: the cursor's at the latest. Rows above the cursor are leftovers
 * from before the cursor was dropped; the indexer writes them again.
 */
const END_OF_READ = `(SELECT min(block) FROM (SELECT block FROM cursor
  UNION ALL ${lastBlockOfRead(`trades WHERE ${IS_NEW}`)}
  UNION ALL ${lastBlockOfRead(`prices INDEXED BY prices_block WHERE ${IS_NEW}`)}
  UNION ALL ${lastBlockOfRead(`events WHERE ${IS_NEW} AND name IN (${quoted(AGENT_EVENTS)})`)}
  UNION ALL ${lastBlockOfRead(`orders WHERE ${IS_NEW}`)}))`
/** Whether a row is of the blocks of a read, and whether it is of those up to the cursor. */
const IS_READ = `${IS_NEW} AND block <= ${END_OF_READ}`
const IS_INDEXED = `${IS_NEW} AND block <= (SELECT block FROM cursor)`
const IN_ORDER = 'ORDER BY block, log_index'
const CURSOR = `SELECT scope, block, hash, timestamp, head, (SELECT max(id) FROM reorgs) AS reorg, ${END_OF_READ} AS end
  FROM cursor`

type CursorWithReorg = Omit<IndexCursor, 'final'> & { scope: string; reorg: number | null; end: number }

/** A database without tables is an empty index. */
function emptyIfNoTables(error: unknown): [] {
  if (error instanceof Error && /no such table/.test(error.message)) return []
  throw error
}
