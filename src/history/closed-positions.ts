import type { Block, TradingChain } from '../chain/chain.ts'
import { getPositions } from '../chain/positions.ts'
import { refuse } from '../errors/catalogue.ts'
import { PositionStatus } from '../protocol/enums.ts'
import type { Position } from '../protocol/position.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { Viewer } from './consistent-read.ts'
import { isIndexable, recentTrades, tradeAddresses, tradeTopics } from './trades.ts'

/** A closed position and what its agent paid for it in all, in USDC base units. */
export type ClosedPosition = Position & { investedUsdc: bigint }

export type ClosedQuery = { agentId: bigint; limit: number; below?: bigint | undefined }

export const CLOSED = `SELECT position_id FROM trades INDEXED BY trades_closed
  WHERE agent_id = ?1 AND type = 'PositionClosed' AND position_id < ?2 ORDER BY position_id DESC LIMIT ?3`
const PAID = `SELECT position_id, usdc_amount FROM trades INDEXED BY trades_position
  WHERE agent_id = ?1 AND position_id IN (${CLOSED}) AND type IN ('PositionOpened', 'PositionIncreased')`
const PAID_FOR = `SELECT position_id, usdc_amount FROM trades INDEXED BY trades_position WHERE agent_id = ?1
  AND position_id IN (SELECT value FROM json_each(?2)) AND type IN ('PositionOpened', 'PositionIncreased') AND block <= ?3`
const HIGHEST = Number.MAX_SAFE_INTEGER

/**
 * A page of an agent's closed positions, newest first by id, complete to `asOf`; `next` is the id below which there are
 * more. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readClosedPositions(
  { viewer, chain, db }: { viewer: Viewer; chain: TradingChain; db: D1Database },
  { agentId, limit, below }: ClosedQuery,
  head: Promise<Block>,
): Promise<{ positions: ClosedPosition[]; next: bigint | undefined; asOf: Block; lagBlocks: number }> {
  const values = [Number(agentId), Number(below ?? HIGHEST), limit + 1]
  const view = await viewer.view({
    queries: session => (isIndexable(agentId) ? [CLOSED, PAID].map(sql => session.prepare(sql).bind(...values)) : []),
    head,
    filter: { address: tradeAddresses(chain), topics: tradeTopics(agentId) },
  })
  const [closed, paid] = view.results.map(({ results }) => results as { position_id: number; usdc_amount: string }[])
  const recent = await recentTrades({ chain, db }, view)
  const ids = new Set([
    ...recent.filter(({ type }) => type === 'PositionClosed').map(({ positionId }) => positionId),
    ...(closed ?? []).map(({ position_id }) => BigInt(position_id)),
  ])
  const page = [...ids].filter(id => below === undefined || id < below).sort((a, b) => (a < b ? 1 : -1))
  const shown = page.slice(0, limit)

  const invested = new Map<bigint, bigint>()
  const add = (id: bigint, amount: bigint) => invested.set(id, (invested.get(id) ?? 0n) + amount)
  for (const { position_id, usdc_amount } of paid ?? []) add(BigInt(position_id), BigInt(usdc_amount))
  // Of a position that was closed above the cursor the page's query knows nothing.
  const late = shown.filter(id => !(closed ?? []).some(({ position_id }) => BigInt(position_id) === id))
  for (const { position_id, usdc_amount } of await paidFor(db, agentId, late, view.cursor.block))
    add(BigInt(position_id), BigInt(usdc_amount))
  for (const { positionId, usdcAmount } of recent.filter(isPurchase)) add(positionId, usdcAmount ?? 0n)

  const records = await getPositions(chain, shown)
  // What has been closed stays so: a node that says otherwise is of another branch, or behind.
  if (records.length !== shown.length || records.some(({ status }) => status === PositionStatus.Open))
    throw refuse('CHAIN_UNREACHABLE')
  return {
    positions: records.map(record => ({ ...record, investedUsdc: invested.get(record.positionId) ?? 0n })),
    next: page.length > limit ? shown.at(-1) : undefined,
    asOf: view.asOf,
    lagBlocks: view.lagBlocks,
  }
}

/**
 * All that was paid for a position, in USDC base units; undefined where the index is not near the head. Throws
 * HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readInvested(
  { viewer, chain, db }: { viewer: Viewer; chain: TradingChain; db: D1Database },
  { agentId, positionId }: { agentId: bigint; positionId: bigint },
  head: Promise<Block>,
): Promise<bigint | undefined> {
  const view = await viewer.view({
    queries: session => [
      session.prepare(PAID_FOR).bind(Number(agentId), JSON.stringify([Number(positionId)]), HIGHEST),
    ],
    head,
    filter: { address: tradeAddresses(chain), topics: tradeTopics(agentId, positionId) },
  })
  if (view.lagBlocks > 0) return undefined
  const [paid] = view.results.map(({ results }) => results as { usdc_amount: string }[])
  const recent = (await recentTrades({ chain, db }, view)).filter(isPurchase)
  return [
    ...(paid ?? []).map(({ usdc_amount }) => BigInt(usdc_amount)),
    ...recent.map(({ usdcAmount = 0n }) => usdcAmount),
  ].reduce((sum, amount) => sum + amount, 0n)
}

const isPurchase = ({ type }: Trade) => type === 'PositionOpened' || type === 'PositionIncreased'

async function paidFor(db: D1Database, agentId: bigint, ids: readonly bigint[], upTo: number) {
  if (ids.length === 0) return []
  const { results } = await db
    .prepare(PAID_FOR)
    .bind(Number(agentId), JSON.stringify(ids.map(Number)), upTo)
    .all<{ position_id: number; usdc_amount: string }>()
  return results
}
