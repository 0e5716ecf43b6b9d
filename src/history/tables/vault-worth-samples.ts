import type { Address } from 'viem'
import type { VaultWorth } from '../../chain/equity-and-worth.ts'
import { deleteAbove, type RevertibleTable } from './table.ts'

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

const INSERT = `INSERT INTO vault_worth (vault, timestamp, block, total_assets, idle_assets, total_shares, share_price)
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
  return db.prepare(INSERT).bind(JSON.stringify(rows), Number(block.timestamp), Number(block.number))
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
