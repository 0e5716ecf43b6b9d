import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import { lifeOf, type PositionLife } from '@agent-trading-service/protocol/position-life'
import type { LogPosition, Trade, TradeType } from '@agent-trading-service/protocol/trade-events'
import type { Address, Hex } from 'viem'
import { type Block, notBefore, type TradingChain } from '../chain/configured-chain.ts'
import { getPositions } from '../chain/positions.ts'
import { refuse } from '../errors/refuse.ts'
import type { SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { type Preparer, readRows } from './tables/table.ts'
import { toTrades, withNotes } from './tables/trades.ts'

/** Selects the trades of an agent, or of all agents, newest first. */
export type TradeQuery = {
  agentId?: bigint | undefined
  limit: number
  /** Selects trades older than this position. */
  before?: LogPosition | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  vault?: Address | undefined
  positionId?: bigint | undefined
}

/** Returns whether SQLite can hold an id. Contracts count ids from 1, so no larger id exists. */
const isIndexable = (id: bigint | undefined): boolean => id === undefined || id <= Number.MAX_SAFE_INTEGER

/**
 * Reads a page of trades, newest first, complete up to `asOf`. `next` is the position before which there are
 * more. `head` is the node's newest block. Throws HISTORY_UNAVAILABLE.
 */
export async function readTrades(
  snapshots: SnapshotReader,
  query: TradeQuery,
  head: Promise<Block>,
): Promise<{ trades: Trade[]; next: LogPosition | undefined } & SnapshotFacts> {
  const { agentId, limit, positionId } = query
  const canExist = isIndexable(agentId) && isIndexable(positionId)
  const { results, facts } = await snapshots.readSnapshot(head, db =>
    canExist ? [selectTradePage(db, query), selectScanEnd(db, query)] : [],
  )
  const page = toTrades(results[0])
  const trades = page.slice(0, limit)
  const [scanned] = (results[1] ?? []) as { block: number; log_index: number }[]
  const scanEnd = scanned && { blockNumber: BigInt(scanned.block), logIndex: scanned.log_index }
  return { trades, next: page.length > limit ? trades.at(-1) : scanEnd, ...facts }
}

/**
 * How many of the newest trades a page looks through for a type, a token or a vault. A page that reaches this is short,
 * and its cursor continues there: an index for each filter would cost a row per trade, and few agents have as many.
 */
const maxScannedTrades = ({ agentId }: TradeQuery): number => (agentId === undefined ? 500 : 2_000)

/** A part of a statement with its bindings. */
type SqlPart = { sql: string; values: (string | number)[] }

/** Selects trades before a place, newest first: of all agents, of one, or of one of its positions. */
function tradesBefore({ agentId, before, positionId }: TradeQuery): SqlPart {
  const conditions = ['TRUE']
  const values: (string | number)[] = []
  if (agentId !== undefined) {
    conditions.push('agent_id = ?')
    values.push(Number(agentId))
  }
  if (positionId !== undefined) {
    conditions.push('position_id = ?')
    values.push(Number(positionId))
  }
  if (before !== undefined) {
    conditions.push('(block, log_index) < (?, ?)')
    values.push(Number(before.blockNumber), before.logIndex)
  }
  // Named, because the planner has no statistics and would guess.
  const index =
    agentId === undefined ? 'INDEXED BY trades_place' : positionId === undefined ? '' : 'INDEXED BY trades_position'
  return {
    sql: `SELECT * FROM trades ${index} WHERE ${conditions.join(' AND ')} ORDER BY block DESC, log_index DESC`,
    values,
  }
}

/** Returns the query for a page and one more row, which shows whether another page follows. */
function selectTradePage(db: Preparer, query: TradeQuery): D1PreparedStatement {
  const { limit } = query
  const { sql, values } = tradesBefore(query)
  const filters = filtersOf(query)
  if (filters.length === 0) return db.prepare(withNotes(`${sql} LIMIT ?`)).bind(...values, limit + 1)
  // Without an ORDER BY of its own: the rows are in order already, and SQLite would read all of them before the first.
  return db
    .prepare(`${withNotes(`${sql} LIMIT ?`)} WHERE ${filters.map(([condition]) => condition).join(' AND ')} LIMIT ?`)
    .bind(...values, maxScannedTrades(query), ...filters.map(([, value]) => value), limit + 1)
}

/** Returns the query for the place of the last row that a page with filters looks at; none if no rows follow. */
function selectScanEnd(db: Preparer, query: TradeQuery): D1PreparedStatement {
  const { sql, values } = tradesBefore(query)
  return db
    .prepare(`SELECT block, log_index FROM (${sql} LIMIT ? OFFSET ${maxScannedTrades(query) - 1})`)
    .bind(...values, filtersOf(query).length > 0 ? 1 : 0)
}

/** The conditions that no index serves. */
const filtersOf = ({ type, token, vault }: TradeQuery): [condition: string, value: string][] => [
  ...(token === undefined ? [] : [['token = ?', token] as [string, string]]),
  ...(type === undefined ? [] : [['type = ?', type] as [string, string]]),
  ...(vault === undefined ? [] : [['vault = ?', vault] as [string, string]]),
]

/** A closed position and what its trades say about it; undefined if they are unknown. */
type ClosedPosition = Position & { life: PositionLife | undefined }

/** Selects a page of an agent's closed positions, newest first. `below` is an exclusive upper bound of the id. */
export type ClosedPositionQuery = { agentId: bigint; limit: number; below?: bigint | undefined }

/** Selects a page of closed positions: agent id, exclusive upper bound of the id, limit. */
const CLOSED_PAGE = `SELECT position_id FROM trades INDEXED BY trades_closed
  WHERE agent_id = ?1 AND position_pnl_usdc IS NOT NULL AND position_id < ?2 ORDER BY position_id DESC LIMIT ?3`
const TRADES_OF_PAGE = `SELECT * FROM trades INDEXED BY trades_position
  WHERE agent_id = ?1 AND position_id IN (${CLOSED_PAGE}) ORDER BY block, log_index`

/**
 * Reads a page of an agent's closed positions, newest id first, complete up to `asOf`. `next` is the id below which
 * there are more. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readClosedPositions(
  { snapshots, chain }: { snapshots: SnapshotReader; chain: TradingChain },
  { agentId, limit, below }: ClosedPositionQuery,
  head: Promise<Block>,
): Promise<{ positions: ClosedPosition[]; next: bigint | undefined } & SnapshotFacts> {
  const values = [Number(agentId), Number(below ?? MAX_ID), limit + 1]
  const { results, facts } = await snapshots.readSnapshot(head, db =>
    isIndexable(agentId) ? [CLOSED_PAGE, TRADES_OF_PAGE].map(sql => db.prepare(sql).bind(...values)) : [],
  )
  const [closed = [], trades] = results
  const ids = (closed as { position_id: number }[]).map(({ position_id }) => BigInt(position_id))
  const page = ids.slice(0, limit)
  const byPosition = Map.groupBy(toTrades(trades), ({ positionId }) => positionId)
  const positions = await getPositions(notBefore(chain, facts.asOf), page)
  // A closed position stays closed, so a node that disagrees is on another branch.
  if (positions.length !== page.length || positions.some(({ status }) => status === PositionStatus.Open))
    throw refuse('CHAIN_UNREACHABLE')
  return {
    positions: positions.map(position => ({
      ...position,
      life: lifeOf(byPosition.get(position.positionId) ?? []),
    })),
    next: ids.length > limit ? page.at(-1) : undefined,
    ...facts,
  }
}

const TRADES_OF_POSITION = `SELECT * FROM trades INDEXED BY trades_position WHERE agent_id = ?1 AND position_id = ?2
  ORDER BY block, log_index`
/** Above every position id. */
const MAX_ID = Number.MAX_SAFE_INTEGER

/**
 * Reads what the trades of a closed position say about it; undefined if the index is too far behind. Throws
 * HISTORY_UNAVAILABLE.
 */
export async function readPositionLife(
  snapshots: SnapshotReader,
  { agentId, positionId }: Pick<Position, 'agentId' | 'positionId'>,
  head: Block,
): Promise<{ life: PositionLife; rowsRead: number } | undefined> {
  const { results, facts } = await snapshots.readSnapshot(head, db => [
    db.prepare(TRADES_OF_POSITION).bind(Number(agentId), Number(positionId)),
  ])
  if (facts.lagBlocks > 0) return undefined
  const life = lifeOf(toTrades(results[0]))
  return life && { life, rowsRead: facts.rowsRead }
}

/** The transaction that executed an agent's intent. */
export type IntentTradeQuery = { agentId: bigint; hash: Hex; blockNumber: bigint }

const INTENT_TRADE = `SELECT * FROM trades WHERE agent_id = ?1 AND block = ?2 AND transaction_hash = ?3 AND source = 'intent'`

/** Reads the trade of an agent's intent by its transaction; undefined if the index does not have it. */
export async function readIntentTrade(
  db: D1Database,
  { agentId, hash, blockNumber }: IntentTradeQuery,
): Promise<Trade | undefined> {
  const [trade] = toTrades(await readRows(db, INTENT_TRADE, Number(agentId), Number(blockNumber), hash))
  return trade
}
