import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import type { TradedPosition } from '../../chain/complete-trades.ts'
import { chunkKeys, defineTable, type IndexTable, type RowOf, readBatch } from './table.ts'

/** A position as it was opened. These facts never change. */
type OpenedPosition = {
  positionId: number
  agentId: number
  vault: Address
  token: Address
  block: number
  openedAt: number
  /** Missing where a deployment has no capital modes. */
  capitalMode?: number | undefined
}

const columns = {
  position_id: ({ positionId }: OpenedPosition) => positionId,
  agent_id: ({ agentId }: OpenedPosition) => agentId,
  vault: ({ vault }: OpenedPosition) => vault,
  token: ({ token }: OpenedPosition) => token,
  block: ({ block }: OpenedPosition) => block,
  opened_at: ({ openedAt }: OpenedPosition) => openedAt,
  capital_mode: ({ capitalMode }: OpenedPosition) => capitalMode ?? null,
}
export const positionsTable: IndexTable<OpenedPosition> = {
  ...defineTable('positions', columns),
  /** Before the rollback of the trades that opened them, so that no index by block is needed. */
  rollback: (db, block) => [
    db
      .prepare(
        `DELETE FROM positions WHERE position_id IN (
          SELECT position_id FROM trades INDEXED BY trades_place WHERE block > ?1 AND type = 'PositionOpened')`,
      )
      .bind(block),
  ],
}

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

const TRADED = 'SELECT * FROM positions WHERE position_id IN (SELECT value FROM json_each(?1))'

/** Reads the token, vault and capital mode of positions. Positions that the index does not have are left out. */
export async function readTradedPositions(
  db: D1Database,
  ids: readonly bigint[],
): Promise<Map<bigint, TradedPosition>> {
  const pages = chunkKeys(ids.map(Number)).map(page => db.prepare(TRADED).bind(JSON.stringify(page)))
  const rows = (await readBatch(db, pages)).flat() as RowOf<typeof columns>[]
  return new Map(
    rows.map(({ position_id, token, vault, capital_mode }) => [
      BigInt(position_id),
      { token, vault, capitalMode: capital_mode ?? undefined },
    ]),
  )
}

/** A position that is open at a block. */
export type OpenPosition = { positionId: bigint; agentId: number; token: Address; vault: Address }

/** The positions that are open at the cursor or were closed after block ?1. */
const ALL_OPEN = `SELECT position_id, agent_id, token, vault FROM positions INDEXED BY positions_open
  WHERE is_closed = 0 AND block <= ?1
  UNION SELECT opened.position_id, opened.agent_id, opened.token, opened.vault FROM trades AS closed INDEXED BY trades_place
    CROSS JOIN positions AS opened ON opened.position_id = closed.position_id
    WHERE closed.block > ?1 AND closed.position_pnl_usdc IS NOT NULL AND opened.block <= ?1`
/** The positions of agents (?2, a JSON array) that are open at the cursor or were closed after block ?1. */
const OPEN_OF_AGENTS = `SELECT position_id, agent_id, token, vault
  FROM json_each(?2) CROSS JOIN positions INDEXED BY positions_open ON agent_id = json_each.value
  WHERE is_closed = 0 AND block <= ?1
  UNION SELECT opened.position_id, opened.agent_id, opened.token, opened.vault
    FROM json_each(?2) CROSS JOIN trades AS closed ON closed.agent_id = json_each.value
    CROSS JOIN positions AS opened ON opened.position_id = closed.position_id
    WHERE closed.block > ?1 AND closed.position_pnl_usdc IS NOT NULL AND opened.block <= ?1`

/** Reads every position that was open after a block; with `agentIds` only theirs. */
export async function readOpenPositions(
  db: D1Database,
  block: number,
  agentIds?: readonly number[],
): Promise<OpenPosition[]> {
  const pages =
    agentIds === undefined
      ? [db.prepare(ALL_OPEN).bind(block)]
      : chunkKeys(agentIds).map(page => db.prepare(OPEN_OF_AGENTS).bind(block, JSON.stringify(page)))
  const rows = (await readBatch(db, pages)).flat() as RowOf<typeof columns>[]
  return rows.map(({ position_id, agent_id, token, vault }) => ({
    positionId: BigInt(position_id),
    agentId: agent_id,
    token,
    vault,
  }))
}
