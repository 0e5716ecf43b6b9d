import type { Address } from 'viem'
import type { Equity, VaultWorth } from '../../chain/equity-and-worth.ts'
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
const INSERT_EQUITY = `INSERT INTO equity
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
    db.prepare(INSERT_EQUITY).bind(JSON.stringify(rows), Number(block.timestamp), Number(block.number)),
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

/** A sample of a vault, in USDC base units; `totalShares` is in base units of the shares. Times are Unix seconds. */
export type SharePricePoint = {
  blockNumber: bigint
  timestamp: bigint
  sharePrice: bigint
  totalAssets: bigint
  totalShares: bigint
}

type VaultWorthRow = {
  block: number
  timestamp: number
  share_price: string
  total_assets: string
  total_shares: string
}

/** Samples of vaults. */
export const vaultWorthTable: RevertibleTable = {
  name: 'vault_worth',
  rollback: (db, block) => [deleteAbove(db, 'vault_worth', block)],
}

const INSERT_WORTH = `INSERT INTO vault_worth (vault, timestamp, block, total_assets, idle_assets, total_shares, share_price)
  SELECT value ->> 0, ?2, ?3, value ->> 1, value ->> 2, value ->> 3, value ->> 4
  FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`

/** Returns a statement that adds the worths of vaults at a block. */
export function insertVaultWorths(
  db: D1Database,
  block: { number: bigint; timestamp: bigint },
  worths: ReadonlyMap<Address, VaultWorth>,
): D1PreparedStatement {
  const rows = [...worths].map(([vault, worth]) => [
    vault,
    `${worth.totalAssets}`,
    `${worth.idleAssets}`,
    `${worth.totalShares}`,
    `${worth.sharePrice}`,
  ])
  return db.prepare(INSERT_WORTH).bind(JSON.stringify(rows), Number(block.timestamp), Number(block.number))
}

/** Returns the sample of a row. */
export function toSharePricePoint(row: Record<string, unknown>): SharePricePoint {
  const { block, timestamp, share_price, total_assets, total_shares } = row as VaultWorthRow
  return {
    blockNumber: BigInt(block),
    timestamp: BigInt(timestamp),
    sharePrice: BigInt(share_price),
    totalAssets: BigInt(total_assets),
    totalShares: BigInt(total_shares),
  }
}

/**
 * How far sampling has come: every change up to a block, and everything in a quarter of an hour (numbered since the
 * epoch).
 */
export type SamplingProgress = { changedTo: number; quarter: number }

/** One row: the progress of sampling. */
export const samplingTable: RevertibleTable = {
  name: 'sampling',
  rollback: (db, block) => [db.prepare('UPDATE sampling SET changed_to = min(changed_to, ?1)').bind(block)],
}

/**
 * Agents whose samples or track records a reorg deletes. It comes before these tables, because it reads what the reorg deletes
 * there. A record is of the cursor, which may be above the sample's block.
 */
export const unsampledTable: RevertibleTable = {
  name: 'unsampled',
  rollback: (db, block) => [
    ...['equity', 'track_records'].map(table =>
      db.prepare(`INSERT OR IGNORE INTO unsampled SELECT agent_id FROM ${table} WHERE block > ?1`).bind(block),
    ),
  ],
}

/** Reads the progress; undefined before the first samples. */
export async function readSamplingProgress(db: D1Database): Promise<SamplingProgress | undefined> {
  const row = await db
    .prepare('SELECT changed_to AS changedTo, quarter FROM sampling')
    .first<{ changedTo: number; quarter: number }>()
  return row ?? undefined
}

/** Returns a statement that stores the progress. */
export const setSamplingProgress = (db: D1Database, { changedTo, quarter }: SamplingProgress): D1PreparedStatement =>
  db
    .prepare(
      `INSERT INTO sampling (id, changed_to, quarter) VALUES (1, ?1, ?2)
      ON CONFLICT (id) DO UPDATE SET changed_to = ?1, quarter = ?2`,
    )
    .bind(changedTo, quarter)
