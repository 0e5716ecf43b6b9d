import type { Equity } from '../../chain/equity-and-worth.ts'
import { deleteAbove, type RevertibleTable } from './table.ts'

/** A sample of an agent's equity, in USDC base units. Times are Unix seconds. */
export type EquityPoint = {
  blockNumber: bigint
  timestamp: bigint
  equity: bigint
  realized: bigint
  unrealized: bigint
  drawdownBps: number
  openCount: number
  /** Whether a position was valued at a stale price. */
  isStale: boolean
}

type EquityRow = {
  block: number
  timestamp: number
  equity: string
  realized: string
  unrealized: string
  drawdown_bps: number
  open_count: number
  stale: number
}

/** Samples of agents. An agent's newest sample has no `until`. */
export const equityTable: RevertibleTable = {
  name: 'equity',
  rollback: (db, block) => [
    deleteAbove(db, 'equity', block),
    db.prepare('UPDATE equity SET until = NULL WHERE until > ?1').bind(block),
  ],
}

const END_NEWEST = `UPDATE equity INDEXED BY equity_newest SET until = ?2
  WHERE until IS NULL AND block < ?2 AND agent_id IN (SELECT value FROM json_each(?1))`
/** Skips agents that are not in the index or have a newer sample. */
const INSERT = `INSERT INTO equity
    (agent_id, timestamp, block, vault, cap, used, equity, realized, unrealized, drawdown_bps, open_count, stale)
  SELECT value ->> 0, ?2, ?3, agents.vault, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8
  FROM json_each(?1) JOIN agents ON agents.agent_id = value ->> 0 AND agents.until IS NULL
  WHERE NOT EXISTS (
    SELECT 1 FROM equity INDEXED BY equity_newest
    WHERE equity.agent_id = value ->> 0 AND equity.until IS NULL AND equity.block >= ?3)`

/** Returns statements that add the equities of agents at a block. */
export function insertEquities(
  db: D1Database,
  block: { number: bigint; timestamp: bigint },
  equities: ReadonlyMap<bigint, Equity>,
): D1PreparedStatement[] {
  const rows = [...equities].map(([agentId, equity]) => [
    Number(agentId),
    `${equity.cap}`,
    `${equity.used}`,
    `${equity.current}`,
    `${equity.realized}`,
    `${equity.unrealized}`,
    Number(equity.drawdownBps),
    equity.openCount,
    equity.staleTokens.length > 0 ? 1 : 0,
  ])
  return [
    db.prepare(END_NEWEST).bind(JSON.stringify([...equities.keys()].map(Number)), Number(block.number)),
    db.prepare(INSERT).bind(JSON.stringify(rows), Number(block.timestamp), Number(block.number)),
  ]
}

/** Returns the sample of a row. */
export function toEquityPoint(row: Record<string, unknown>): EquityPoint {
  const { block, timestamp, equity, realized, unrealized, drawdown_bps, open_count, stale } = row as EquityRow
  return {
    blockNumber: BigInt(block),
    timestamp: BigInt(timestamp),
    equity: BigInt(equity),
    realized: BigInt(realized),
    unrealized: BigInt(unrealized),
    drawdownBps: drawdown_bps,
    openCount: open_count,
    isStale: stale === 1,
  }
}
