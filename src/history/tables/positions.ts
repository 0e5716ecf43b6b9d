import type { Address } from 'viem'
import type { TradedPosition } from '../../chain/complete-trades.ts'
import type { Trade } from '../../protocol/trade-events.ts'
import { chunkKeys, defineTable } from './table.ts'

/** A position as it was opened. These facts never change. */
export type OpenedPosition = {
  positionId: number
  agentId: number
  vault: Address
  token: Address
  block: number
  openedAt: number
  /** Missing where a deployment has no capital modes. */
  capitalMode?: number | undefined
}

export const positionsTable = defineTable<OpenedPosition>('positions', {
  position_id: position => position.positionId,
  agent_id: position => position.agentId,
  vault: position => position.vault,
  token: position => position.token,
  block: position => position.block,
  opened_at: position => position.openedAt,
  capital_mode: position => position.capitalMode ?? null,
})

/** Returns the positions that trades opened. */
export const openedPositions = (trades: readonly Trade[]): OpenedPosition[] =>
  trades
    .filter(({ type }) => type === 'PositionOpened')
    .map(({ positionId, agentId, vault, token, capitalMode, blockNumber, timestamp }) => ({
      positionId: Number(positionId),
      agentId: Number(agentId),
      vault,
      token,
      block: Number(blockNumber),
      openedAt: Number(timestamp),
      capitalMode,
    }))

/** Reads the token, vault and capital mode of positions. Positions that the index does not have are left out. */
export async function readTradedPositions(
  db: D1Database,
  ids: readonly bigint[],
): Promise<Map<bigint, TradedPosition>> {
  const positions = new Map<bigint, TradedPosition>()
  for (const page of chunkKeys(ids.map(Number))) {
    const { results } = await db
      .prepare(
        'SELECT position_id, token, vault, capital_mode FROM positions WHERE position_id IN (SELECT value FROM json_each(?1))',
      )
      .bind(JSON.stringify(page))
      .all<{ position_id: number; token: Address; vault: Address; capital_mode: number | null }>()
    for (const { position_id, token, vault, capital_mode } of results)
      positions.set(BigInt(position_id), { token, vault, capitalMode: capital_mode ?? undefined })
  }
  return positions
}

/** A position that is open at the cursor. */
export type OpenPosition = { positionId: bigint; agentId: number; token: Address; vault: Address }

/** Reads every position that is open at the cursor. */
export async function readOpenPositions(db: D1Database): Promise<OpenPosition[]> {
  const { results } = await db
    .prepare('SELECT position_id, agent_id, token, vault FROM positions INDEXED BY positions_open WHERE is_closed = 0')
    .all<{ position_id: number; agent_id: number; token: Address; vault: Address }>()
  return results.map(({ position_id, agent_id, token, vault }) => ({
    positionId: BigInt(position_id),
    agentId: agent_id,
    token,
    vault,
  }))
}
