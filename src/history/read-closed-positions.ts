import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import type { Block } from '../chain/configured-chain.ts'
import { getPositions } from '../chain/positions.ts'
import { refuse } from '../errors/refuse.ts'
import { isPurchase, MAX_INTEGER, type PurchaseRow, readPurchases } from './read-position-purchases.ts'
import { decodeTrades, isIndexable, type TradeSources, tradeLogFilter } from './read-trades.ts'

/** A closed position and everything that its agent paid for it, in USDC base units. */
export type ClosedPosition = Position & { investedUsdc: bigint }

/** Selects a page of an agent's closed positions, newest first. `below` is an exclusive upper bound of the id. */
export type ClosedPositionQuery = { agentId: bigint; limit: number; below?: bigint | undefined }

/** Selects a page of closed positions: agent id, exclusive upper bound of the id, limit. */
export const CLOSED_PAGE = `SELECT position_id FROM trades INDEXED BY trades_closed
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
