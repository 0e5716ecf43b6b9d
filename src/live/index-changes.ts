import type { Address, Hex } from 'viem'
import { type TradeRow, toTrade } from '../history/tables/trades.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { Mark } from './store.ts'

/** What the index has that the log has not: where to begin, what was taken back, or what has happened since. */
export type News =
  | { is: 'beginning'; block: number; hash: Hex; reorg: number }
  | { is: 'reorgs'; reorgs: { id: number; ancestor: number; lost: number }[] }
  | { is: 'trades'; block: number; hash: Hex; timestamp: number; trades: Trade[]; prices: Address[]; isWhole: boolean }

/** A log is not begun in the middle of a backfill: what is that old is no event. */
const NEAR_HEAD = 256
const PAGE = 500

/**
 * Reads from the index what happened after a mark, in one snapshot. Undefined where the index holds nothing of these
 * contracts, or is filled for the first time.
 */
export async function readNews(db: D1Database, scope: string, mark: Mark | undefined): Promise<News | undefined> {
  const { block = -1, logIndex = 0, reorg = 0 } = mark ?? {}
  const session = db.withSession('first-primary') // what was written a moment ago is what is asked for
  const [cursors, reorgs, own, trades, prices] = await session
    .batch<Record<string, unknown>>([
      session.prepare('SELECT scope, block, hash, timestamp, head, (SELECT max(id) FROM reorgs) AS reorg FROM cursor'),
      session.prepare('SELECT id, ancestor, lost FROM reorgs WHERE id > ?1 ORDER BY id').bind(reorg),
      session.prepare('SELECT hash FROM blocks WHERE number = ?1').bind(block),
      session
        .prepare('SELECT * FROM trades WHERE (block, log_index) > (?1, ?2) ORDER BY block, log_index LIMIT ?3')
        .bind(block, logIndex, block < 0 ? 0 : PAGE),
      session.prepare('SELECT DISTINCT token FROM prices WHERE block > ?1 AND ?1 >= 0').bind(block),
    ])
    .catch(ignoreMissing)
  const cursor = cursors?.results[0] as Cursor | undefined
  if (cursor === undefined || cursor.scope !== scope) return undefined
  if (mark === undefined || block < 0) {
    if (cursor.head - cursor.block > NEAR_HEAD) return undefined
    return { is: 'beginning', block: cursor.block, hash: cursor.hash, reorg: cursor.reorg ?? 0 }
  }
  if (reorgs && reorgs.results.length > 0)
    return { is: 'reorgs', reorgs: reorgs.results as { id: number; ancestor: number; lost: number }[] }
  const hash = own?.results[0]?.hash
  // The index was filled anew without a word: nothing that was sent is of this chain.
  if (cursor.block < block || (mark.hash !== undefined && hash !== undefined && hash !== mark.hash))
    return { is: 'reorgs', reorgs: [{ id: reorg, ancestor: -1, lost: block }] }
  const found = (trades?.results ?? []) as TradeRow[]
  return {
    ...{ is: 'trades', block: cursor.block, hash: cursor.hash, timestamp: cursor.timestamp },
    ...{ trades: found.map(toTrade), isWhole: found.length < PAGE },
    prices: (prices?.results ?? []).map(({ token }) => token as Address),
  }
}

type Cursor = { scope: string; block: number; hash: Hex; timestamp: number; head: number; reorg: number | null }

/** A database without tables is an index that was never written. */
function ignoreMissing(error: unknown): [] {
  if (error instanceof Error && /no such table/.test(error.message)) return []
  throw error
}

/** An open position: whose it is, and of what. */
export type Holding = { positionId: bigint; agentId: number; token: Address; vault: Address }

/** Every position that the index holds for open. */
export async function readHoldings(db: D1Database): Promise<Holding[]> {
  const { results } = await db
    .prepare(
      `SELECT position_id, agent_id, token, vault FROM positions WHERE NOT EXISTS (SELECT 1 FROM trades INDEXED BY trades_closed
        WHERE trades.agent_id = positions.agent_id AND trades.position_id = positions.position_id AND type = 'PositionClosed')`,
    )
    .all<{ position_id: number; agent_id: number; token: Address; vault: Address }>()
  return results.map(({ position_id, agent_id, token, vault }) => ({
    ...{ positionId: BigInt(position_id), agentId: agent_id, token, vault },
  }))
}

/** What agents are at the cursor: the vault and the track whose policy holds for them. */
export async function readMandates(
  db: D1Database,
  agentIds: readonly number[],
): Promise<{ agentId: number; vault: Address; track: number }[]> {
  if (agentIds.length === 0) return []
  const { results } = await db
    .prepare(
      `SELECT agent_id AS agentId, vault, track FROM agents
      WHERE until IS NULL AND agent_id IN (SELECT value FROM json_each(?1))`,
    )
    .bind(JSON.stringify(agentIds))
    .all<{ agentId: number; vault: Address; track: number }>()
  return results
}
