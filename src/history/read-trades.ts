import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import { lifeOf, type PositionLife } from '@agent-trading-service/protocol/position-life'
import {
  compareLogPositions,
  type LogPosition,
  TRADE_TOPICS,
  type Trade,
  type TradeType,
} from '@agent-trading-service/protocol/trade-events'
import { type Address, type Hex, numberToHex } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import { getPositions } from '../chain/positions.ts'
import { refuse } from '../errors/refuse.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { blockRequest, type LogFilter } from '../rpc/requests.ts'
import { toTrades } from './followed-events.ts'
import type { Snapshot, SnapshotFacts, SnapshotReader } from './read-index-to-head.ts'
import { selectNamed, toNamed } from './tables/events.ts'
import { readTradedPositions } from './tables/positions.ts'
import { addNotes, selectRelayedTrades, type TradeRow, toRelayedTrade, toTrade, withNotes } from './tables/trades.ts'

/** The dependencies of a read of trades or positions. */
export type TradeSources = { snapshots: SnapshotReader; chain: TradingChain; db: D1Database }

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

/** Placements, because the trade of an order has the note of its placement. */
const ORDER_PLACED = eventTopic(orderBookAbi, 'OrderPlaced')

/** Returns the filter for the logs of all trades, or of an agent's. The last result of the index has the named contracts. */
const tradeLogFilter =
  (chain: TradingChain, agentId?: bigint) =>
  ({ results }: Pick<Snapshot, 'results'>): LogFilter => {
    const { routers, orderBooks } = toNamed(chain, results.at(-1))
    return {
      address: [...routers, chain.trading.PositionManager, ...orderBooks],
      topics: [
        [...TRADE_TOPICS, ORDER_PLACED],
        null,
        agentId === undefined ? null : numberToHex(agentId, { size: 32 }),
      ],
    }
  }

/**
 * Reads a page of trades, newest first, complete up to `asOf`. `next` is the position before which there are
 * more. `head` is the node's newest block. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readTrades(
  { snapshots, chain, db }: TradeSources,
  query: TradeQuery,
  head: Promise<Block>,
): Promise<{ trades: Trade[]; next: LogPosition | undefined } & SnapshotFacts> {
  const { agentId, limit, before, positionId } = query
  const canExist = isIndexable(agentId) && isIndexable(positionId)
  const snapshot = await snapshots.readSnapshot({
    queries: session =>
      canExist
        ? [
            selectTradePage(session, query),
            selectRelayedTrades(session, agentId),
            selectScanEnd(session, query),
            selectNamed(session, chain),
          ]
        : [],
    head,
    filter: tradeLogFilter(chain, agentId),
    until: before?.blockNumber,
  })
  const { results, asOf, lagBlocks, rowsRead } = snapshot
  const decoded = lagBlocks > 0 ? await readRelayedTrades(chain, snapshot) : await decodeTrades({ chain, db }, snapshot)
  const newer = await addNotes(db, decoded, placementsOf(snapshot))
  const page = [
    ...newer.filter(trade => matches(trade, query)).reverse(),
    ...(results[0]?.results ?? []).map(row => toTrade(row as TradeRow)),
  ]
  const trades = page.slice(0, limit)
  const [scanned] = (results[2]?.results ?? []) as { block: number; log_index: number }[]
  const scanEnd = scanned && { blockNumber: BigInt(scanned.block), logIndex: scanned.log_index }
  return { trades, next: page.length > limit ? trades.at(-1) : scanEnd, asOf, lagBlocks, rowsRead }
}

/** Returns the transactions that placed orders above the cursor. */
const placementsOf = ({ logs }: Snapshot): (readonly [orderId: Hex, transactionHash: Hex])[] =>
  logs.flatMap(({ topics: [name, orderId], transactionHash }) =>
    name === ORDER_PLACED && orderId !== undefined ? [[orderId, transactionHash] as const] : [],
  )

/** Decodes the trades of a snapshot's logs, oldest first. */
async function decodeTrades(
  { chain, db }: Pick<TradeSources, 'chain' | 'db'>,
  { logs, results }: Snapshot,
): Promise<Trade[]> {
  if (logs.length === 0) return []
  const times = await readBlockTimes(chain.rpc, logs)
  return toTrades(chain, toNamed(chain, results.at(-1)), logs, times, ids => readTradedPositions(db, ids))
}

/**
 * Returns the service's own trades above the cursor whose blocks the chain still has, oldest first. They complete a
 * snapshot that is too far behind to read all logs up to the head.
 */
async function readRelayedTrades(chain: TradingChain, { results, cursor }: Snapshot): Promise<Trade[]> {
  const relayed = (results[1]?.results ?? [])
    .map(toRelayedTrade)
    .filter(({ trade }) => trade.blockNumber > BigInt(cursor.block))
  const blocks = [...new Set(relayed.map(({ trade }) => trade.blockNumber))]
  if (blocks.length === 0) return []
  const responses = await chain.rpc.batch(blocks.map(block => blockRequest(block)))
  const hashes = new Map(blocks.map((block, index) => [block, responses[index]?.result?.hash]))
  return relayed
    .filter(({ trade, blockHash }) => hashes.get(trade.blockNumber) === blockHash)
    .map(({ trade }) => trade)
    .sort(compareLogPositions)
}

/**
 * How many of the newest trades a page looks through for a type, a token or a vault. A page that reaches this is short, and its
 * cursor continues there: an index for each filter would cost a row per trade, and few agents have as many.
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
function selectTradePage(db: Pick<D1Database, 'prepare'>, query: TradeQuery): D1PreparedStatement {
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
function selectScanEnd(db: Pick<D1Database, 'prepare'>, query: TradeQuery): D1PreparedStatement {
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

function matches(trade: Trade, { before, type, token, vault, positionId }: TradeQuery): boolean {
  if (before !== undefined && compareLogPositions(trade, before) >= 0) return false
  if (type !== undefined && trade.type !== type) return false
  if (vault !== undefined && trade.vault !== vault) return false
  return (token === undefined || trade.token === token) && (positionId === undefined || trade.positionId === positionId)
}

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
 * Reads a page of an agent's closed positions, newest id first, complete up to `asOf`. `next` is the id below which there
 * are more. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readClosedPositions(
  { snapshots, chain, db }: TradeSources,
  { agentId, limit, below }: ClosedPositionQuery,
  head: Promise<Block>,
): Promise<{ positions: ClosedPosition[]; next: bigint | undefined } & SnapshotFacts> {
  const values = [Number(agentId), Number(below ?? MAX_INTEGER), limit + 1]
  const snapshot = await snapshots.readSnapshot({
    queries: session =>
      isIndexable(agentId)
        ? [
            ...[CLOSED_PAGE, TRADES_OF_PAGE].map(sql => session.prepare(sql).bind(...values)),
            selectNamed(session, chain),
          ]
        : [],
    head,
    filter: tradeLogFilter(chain, agentId),
  })
  const { cursor, asOf, lagBlocks, rowsRead } = snapshot
  const [closed = [], trades = []] = snapshot.results.map(({ results }) => results)
  const newTrades = await decodeTrades({ chain, db }, snapshot)
  const indexedIds = closed.map(({ position_id }) => BigInt(position_id as number))
  const newIds = newTrades
    .filter(({ positionPnlUsdc }) => positionPnlUsdc !== undefined)
    .map(({ positionId }) => positionId)
  const ids = [...new Set([...newIds, ...indexedIds])]
    .filter(id => below === undefined || id < below)
    .sort((a, b) => (a < b ? 1 : -1))
  const page = ids.slice(0, limit)

  // The page's query does not cover trades of positions that were closed above the cursor.
  const closedAboveCursor = page.filter(id => !indexedIds.includes(id))
  const others = await readTradesOfPositions(db, agentId, closedAboveCursor, cursor.block)
  const byPosition = Map.groupBy(
    [...(trades as TradeRow[]).map(toTrade), ...others, ...newTrades],
    ({ positionId }) => positionId,
  )
  const positions = await getPositions(chain, page)
  // A closed position stays closed, so a node that disagrees is behind or on another branch.
  if (positions.length !== page.length || positions.some(({ status }) => status === PositionStatus.Open))
    throw refuse('CHAIN_UNREACHABLE')
  return {
    positions: positions.map(position => ({
      ...position,
      life: lifeOf(byPosition.get(position.positionId) ?? []),
    })),
    next: ids.length > limit ? page.at(-1) : undefined,
    asOf,
    lagBlocks,
    rowsRead,
  }
}

/** Selects the trades of positions (?2, a JSON array) up to a block. */
const TRADES_OF_POSITIONS = `SELECT * FROM trades INDEXED BY trades_position WHERE agent_id = ?1
  AND position_id IN (SELECT value FROM json_each(?2)) AND block <= ?3 ORDER BY block, log_index`
/** Above every position id and every block. */
const MAX_INTEGER = Number.MAX_SAFE_INTEGER

/**
 * Reads what the trades of a closed position say about it; undefined if the index is too far behind. Throws
 * HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readPositionLife(
  { snapshots, chain, db }: TradeSources,
  { agentId, positionId }: Pick<Position, 'agentId' | 'positionId'>,
  head: Promise<Block>,
): Promise<{ life: PositionLife; rowsRead: number } | undefined> {
  const snapshot = await snapshots.readSnapshot({
    queries: session => [
      session.prepare(TRADES_OF_POSITIONS).bind(Number(agentId), JSON.stringify([Number(positionId)]), MAX_INTEGER),
      selectNamed(session, chain),
    ],
    head,
    filter: tradeLogFilter(chain, agentId),
  })
  if (snapshot.lagBlocks > 0) return undefined
  const [rows = []] = snapshot.results.map(({ results }) => results as TradeRow[])
  const trades = [...rows.map(toTrade), ...(await decodeTrades({ chain, db }, snapshot))]
  const life = lifeOf(trades.filter(trade => trade.positionId === positionId))
  return life && { life, rowsRead: snapshot.rowsRead }
}

/** The transaction that executed an agent's intent. */
export type IntentTradeQuery = { agentId: bigint; hash: Hex; blockNumber: bigint }

/** Reads the trade of an agent's intent by its transaction; undefined if the index does not have it. */
export async function readIntentTrade(
  db: D1Database,
  { agentId, hash, blockNumber }: IntentTradeQuery,
): Promise<Trade | undefined> {
  const row = await db
    .prepare("SELECT * FROM trades WHERE agent_id = ?1 AND block = ?2 AND transaction_hash = ?3 AND source = 'intent'")
    .bind(Number(agentId), Number(blockNumber), hash)
    .first<TradeRow>()
  return row === null ? undefined : toTrade(row)
}

/** Reads the trades of positions up to a block. */
async function readTradesOfPositions(
  db: D1Database,
  agentId: bigint,
  ids: readonly bigint[],
  upToBlock: number,
): Promise<Trade[]> {
  if (ids.length === 0) return []
  const { results } = await db
    .prepare(TRADES_OF_POSITIONS)
    .bind(Number(agentId), JSON.stringify(ids.map(Number)), upToBlock)
    .all<TradeRow>()
  return results.map(toTrade)
}
