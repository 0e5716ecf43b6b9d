import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Block } from '../chain/configured-chain.ts'
import { decodeTrades, type TradeSources, tradeLogFilter } from './read-trades.ts'

/** Selects the purchases of positions (?2, a JSON array) up to a block. */
const PURCHASES = `SELECT position_id, usdc_amount FROM trades INDEXED BY trades_position WHERE agent_id = ?1
  AND position_id IN (SELECT value FROM json_each(?2)) AND type IN ('PositionOpened', 'PositionIncreased') AND block <= ?3`
/** Above every position id and every block. */
export const MAX_INTEGER = Number.MAX_SAFE_INTEGER

/** The price paid in one purchase, in USDC base units. */
export type PurchaseRow = { position_id: number; usdc_amount: string }

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
export const isPurchase = ({ type }: Trade) => type === 'PositionOpened' || type === 'PositionIncreased'

/** Reads the purchases of positions up to a block. */
export async function readPurchases(
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
