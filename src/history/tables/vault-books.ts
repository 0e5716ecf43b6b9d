import { hourOf } from '@agent-trading-service/protocol/track-record'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import {
  EMPTY_VAULT,
  parseVault,
  serializeVault,
  type VaultBook,
  vaultChangesOf,
} from '@agent-trading-service/protocol/vault-book'
import type { Address } from 'viem'
import type { ContractEvent } from './events.ts'
import { bindRows, type Preparer, readRows } from './table.ts'

/**
 * What a vault's events and trades add up to after the last of an hour (since the epoch), which is in `changedBlock`.
 */
type VaultBookAt = { vault: Address; hour: number; changedBlock: number; book: VaultBook }

const LAST_BOOKS = `SELECT vault, hour, changed_block, book FROM json_each(?1) CROSS JOIN vault_books ON vault = value
  AND hour = (SELECT max(hour) FROM vault_books WHERE vault = value)`

export const toVaultBook = (row: object): VaultBookAt => {
  const { vault, hour, changed_block, book } = row as Omit<VaultBookAt, 'book'> & {
    changed_block: number
    book: string
  }
  return { vault, hour, changedBlock: changed_block, book: parseVault(book) }
}

/**
 * Continues the stored books with the trades and events of a pass. Returns one book per vault and hour with a change.
 */
export async function foldVaultBooks(
  db: D1Database,
  { trades, events }: { trades: readonly Trade[]; events: readonly ContractEvent[] },
): Promise<VaultBookAt[]> {
  const changes = vaultChangesOf(trades, events)
  const vaults = [...new Set(changes.map(({ vault }) => vault))]
  if (vaults.length === 0) return []
  const stored = await readRows(db, LAST_BOOKS, JSON.stringify(vaults))
  const books = new Map(stored.map(toVaultBook).map(({ vault, book }) => [vault, book]))
  const folded = new Map<string, VaultBookAt>()
  for (const { vault, timestamp, blockNumber, apply } of changes) {
    const book = apply(books.get(vault) ?? EMPTY_VAULT)
    books.set(vault, book)
    const hour = hourOf(timestamp)
    folded.set(`${vault} ${hour}`, { vault, hour, changedBlock: Number(blockNumber), book })
  }
  return [...folded.values()]
}

/** Returns statements that store books. `block` is the final block that showed that their hours are over. */
export const insertVaultBooks = (db: D1Database, books: readonly VaultBookAt[], block: number): D1PreparedStatement[] =>
  bindRows(
    db,
    `INSERT INTO vault_books (vault, hour, changed_block, block, book)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?1)`,
    books.map(({ vault, hour, changedBlock, book }) => [vault, hour, changedBlock, block, serializeVault(book)]),
  )

const BOOKS_AT = `SELECT asked.key AS place, vault_books.* FROM json_each(?2) AS asked CROSS JOIN vault_books
  ON vault = ?1 AND hour = (SELECT max(hour) FROM vault_books WHERE vault = ?1 AND hour <= asked.value)
  ORDER BY asked.key`

/** Returns a query for the last book of a vault at or before the end of each hour of a list, in its order. */
export const selectVaultBooks = (db: Preparer, vault: Address, hours: readonly number[]) =>
  db.prepare(BOOKS_AT).bind(vault, JSON.stringify(hours))
