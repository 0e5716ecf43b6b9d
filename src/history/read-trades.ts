import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import {
  compareLogPositions,
  type LogPosition,
  TRADE_TOPICS,
  type Trade,
  type TradeType,
} from '@agent-trading-service/protocol/trade-events'
import { type Address, numberToHex } from 'viem'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import { getPositions } from '../chain/positions.ts'
import { refuse } from '../errors/refuse.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { blockRequest, type LogFilter } from '../rpc/requests.ts'
import { toTrades } from './followed-events.ts'
import type { Snapshot, SnapshotReader } from './read-index-to-head.ts'
import { readTradedPositions } from './tables/positions.ts'
import { selectRelayedTrades, type TradeRow, toRelayedTrade, toTrade } from './tables/trades.ts'

/** The dependencies of a read of trades or positions. */
export type TradeSources = { snapshots: SnapshotReader; chain: TradingChain; db: D1Database }

/** Selects an agent's trades, newest first. */
export type TradeQuery = {
  agentId: bigint
  limit: number
  /** Selects trades older than this position. */
  before?: LogPosition | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  positionId?: bigint | undefined
}

/** Returns whether SQLite can hold an id. Contracts count ids from 1, so no larger id exists. */
const isIndexable = (id: bigint | undefined): boolean => id === undefined || id <= Number.MAX_SAFE_INTEGER

/** Returns the filter for the logs of an agent's trades, or of one of its positions. */
const tradeLogFilter = ({ trading }: TradingChain, agentId: bigint, positionId?: bigint): LogFilter => ({
  address: [trading.TradeRouter, trading.PositionManager],
  topics: [
    TRADE_TOPICS,
    positionId === undefined ? null : numberToHex(positionId, { size: 32 }),
    numberToHex(agentId, { size: 32 }),
  ],
})

/**
 * Reads a page of an agent's trades, newest first, complete up to `asOf`. `next` is the position before which there are
 * more. `head` is the node's newest block. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readTrades(
  { snapshots, chain, db }: TradeSources,
  query: TradeQuery,
  head: Promise<Block>,
): Promise<{ trades: Trade[]; next: LogPosition | undefined; asOf: Block; lagBlocks: number }> {
  const { agentId, limit, before, positionId } = query
  const canExist = isIndexable(agentId) && isIndexable(positionId)
  const snapshot = await snapshots.readSnapshot({
    queries: session => (canExist ? [selectTradePage(session, query), selectRelayedTrades(session, agentId)] : []),
    head,
    filter: tradeLogFilter(chain, agentId, positionId),
    until: before?.blockNumber,
  })
  const { results, asOf, lagBlocks } = snapshot
  const newer = lagBlocks > 0 ? await readRelayedTrades(chain, snapshot) : await decodeTrades({ chain, db }, snapshot)
  const page = [
    ...newer.filter(trade => matches(trade, query)).reverse(),
    ...(results[0]?.results ?? []).map(row => toTrade(row as TradeRow)),
  ]
  const trades = page.slice(0, limit)
  return { trades, next: page.length > limit ? trades.at(-1) : undefined, asOf, lagBlocks }
}

/** Decodes the trades of a snapshot's logs, oldest first. */
async function decodeTrades({ chain, db }: Pick<TradeSources, 'chain' | 'db'>, { logs }: Snapshot): Promise<Trade[]> {
  if (logs.length === 0) return []
  return toTrades(chain, logs, await readBlockTimes(chain.rpc, logs), ids => readTradedPositions(db, ids))
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

/** Returns the query for a page and one more row, which shows whether another page follows. */
function selectTradePage(db: Pick<D1Database, 'prepare'>, query: TradeQuery): D1PreparedStatement {
  const { agentId, limit, before, type, token, positionId } = query
  const conditions = ['agent_id = ?']
  const values: (string | number)[] = [Number(agentId)]
  const filterBy = (condition: string, ...bindings: (string | number)[]) => {
    conditions.push(condition)
    values.push(...bindings)
  }
  if (positionId !== undefined) filterBy('position_id = ?', Number(positionId))
  if (token !== undefined) filterBy('token = ?', token)
  if (type !== undefined) filterBy('type = ?', type)
  if (before !== undefined) filterBy('(block, log_index) < (?, ?)', Number(before.blockNumber), before.logIndex)
  return db
    .prepare(
      `SELECT * FROM trades ${indexFor(query)} WHERE ${conditions.join(' AND ')}
      ORDER BY block DESC, log_index DESC LIMIT ?`,
    )
    .bind(...values, limit + 1)
}

/** Names the index for a set of filters, because the planner has no statistics and would guess. */
function indexFor({ type, token, positionId }: TradeQuery): string {
  if (positionId !== undefined) return 'INDEXED BY trades_position'
  if (token !== undefined) return type === undefined ? 'INDEXED BY trades_token' : 'INDEXED BY trades_token_type'
  return type === undefined ? '' : 'INDEXED BY trades_type'
}

function matches(trade: Trade, { before, type, token, positionId }: TradeQuery): boolean {
  if (before !== undefined && compareLogPositions(trade, before) >= 0) return false
  if (type !== undefined && trade.type !== type) return false
  return (token === undefined || trade.token === token) && (positionId === undefined || trade.positionId === positionId)
}

/** A closed position and everything that its agent paid for it, in USDC base units. */
type ClosedPosition = Position & { investedUsdc: bigint }

/** Selects a page of an agent's closed positions, newest first. `below` is an exclusive upper bound of the id. */
export type ClosedPositionQuery = { agentId: bigint; limit: number; below?: bigint | undefined }

/** Selects a page of closed positions: agent id, exclusive upper bound of the id, limit. */
const CLOSED_PAGE = `SELECT position_id FROM trades INDEXED BY trades_closed
  WHERE agent_id = ?1 AND type = 'PositionClosed' AND position_id < ?2 ORDER BY position_id DESC LIMIT ?3`
const PURCHASES_OF_PAGE = `SELECT position_id, usdc_amount FROM trades INDEXED BY trades_position
  WHERE agent_id = ?1 AND position_id IN (${CLOSED_PAGE}) AND type IN ('PositionOpened', 'PositionIncreased')`

/**
 * Reads a page of an agent's closed positions, newest id first, complete up to `asOf`. `next` is the id below which there
 * are more. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readClosedPositions(
  { snapshots, chain, db }: TradeSources,
  { agentId, limit, below }: ClosedPositionQuery,
  head: Promise<Block>,
): Promise<{ positions: ClosedPosition[]; next: bigint | undefined; asOf: Block; lagBlocks: number }> {
  const values = [Number(agentId), Number(below ?? MAX_INTEGER), limit + 1]
  const snapshot = await snapshots.readSnapshot({
    queries: session =>
      isIndexable(agentId) ? [CLOSED_PAGE, PURCHASES_OF_PAGE].map(sql => session.prepare(sql).bind(...values)) : [],
    head,
    filter: tradeLogFilter(chain, agentId),
  })
  const { cursor, asOf, lagBlocks } = snapshot
  const [closed = [], purchases = []] = snapshot.results.map(({ results }) => results as PurchaseRow[])
  const newTrades = await decodeTrades({ chain, db }, snapshot)
  const indexedIds = closed.map(({ position_id }) => BigInt(position_id))
  const newIds = newTrades.filter(({ type }) => type === 'PositionClosed').map(({ positionId }) => positionId)
  const ids = [...new Set([...newIds, ...indexedIds])]
    .filter(id => below === undefined || id < below)
    .sort((a, b) => (a < b ? 1 : -1))
  const page = ids.slice(0, limit)

  // The page's query does not cover purchases of positions that were closed above the cursor.
  const closedAboveCursor = page.filter(id => !indexedIds.includes(id))
  const otherPurchases = await readPurchases(db, agentId, closedAboveCursor, cursor.block)
  const invested = new Map<bigint, bigint>()
  const add = (id: bigint, amount: bigint) => invested.set(id, (invested.get(id) ?? 0n) + amount)
  for (const row of [...purchases, ...otherPurchases]) add(BigInt(row.position_id), BigInt(row.usdc_amount))
  for (const { positionId, usdcAmount = 0n } of newTrades.filter(isPurchase)) add(positionId, usdcAmount)

  const positions = await getPositions(chain, page)
  // A closed position stays closed, so a node that disagrees is behind or on another branch.
  if (positions.length !== page.length || positions.some(({ status }) => status === PositionStatus.Open))
    throw refuse('CHAIN_UNREACHABLE')
  return {
    positions: positions.map(position => ({ ...position, investedUsdc: invested.get(position.positionId) ?? 0n })),
    next: ids.length > limit ? page.at(-1) : undefined,
    asOf,
    lagBlocks,
  }
}

/** Selects the purchases of positions (?2, a JSON array) up to a block. */
const PURCHASES = `SELECT position_id, usdc_amount FROM trades INDEXED BY trades_position WHERE agent_id = ?1
  AND position_id IN (SELECT value FROM json_each(?2)) AND type IN ('PositionOpened', 'PositionIncreased') AND block <= ?3`
/** Above every position id and every block. */
const MAX_INTEGER = Number.MAX_SAFE_INTEGER

/** The price paid in one purchase, in USDC base units. */
type PurchaseRow = { position_id: number; usdc_amount: string }

/**
 * Reads the total paid for a position, in USDC base units; undefined if the index is too far behind. Throws
 * HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readInvestedUsdc(
  { snapshots, chain, db }: TradeSources,
  { agentId, positionId }: { agentId: bigint; positionId: bigint },
  head: Promise<Block>,
): Promise<bigint | undefined> {
  const snapshot = await snapshots.readSnapshot({
    queries: session => [
      session.prepare(PURCHASES).bind(Number(agentId), JSON.stringify([Number(positionId)]), MAX_INTEGER),
    ],
    head,
    filter: tradeLogFilter(chain, agentId, positionId),
  })
  if (snapshot.lagBlocks > 0) return undefined
  const [purchases = []] = snapshot.results.map(({ results }) => results as PurchaseRow[])
  const newPurchases = (await decodeTrades({ chain, db }, snapshot)).filter(isPurchase)
  const amounts = [
    ...purchases.map(({ usdc_amount }) => BigInt(usdc_amount)),
    ...newPurchases.map(({ usdcAmount = 0n }) => usdcAmount),
  ]
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

/** Whether a trade is a purchase, which adds to the total paid for its position. */
const isPurchase = ({ type }: Trade) => type === 'PositionOpened' || type === 'PositionIncreased'

/** Reads the purchases of positions up to a block. */
async function readPurchases(
  db: D1Database,
  agentId: bigint,
  ids: readonly bigint[],
  upToBlock: number,
): Promise<PurchaseRow[]> {
  if (ids.length === 0) return []
  const { results } = await db
    .prepare(PURCHASES)
    .bind(Number(agentId), JSON.stringify(ids.map(Number)), upToBlock)
    .all<PurchaseRow>()
  return results
}
