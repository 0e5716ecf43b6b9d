import { migrations } from '../generated/migrations.ts'
import { commitAtCursor } from './commit-at-cursor.ts'
import { ALL_TABLES, deletePage, EVENT_TABLES } from './delete-index.ts'
import { agentsTable, readCurrentAgents } from './tables/agents.ts'
import { blocksTable, deleteFinalBlocks, readBlocks } from './tables/blocks.ts'
import { type IndexCursor, moveCursorBack, selectCursor, setCursor, toCursor } from './tables/cursor.ts'
import { equityTable } from './tables/equity-samples.ts'
import { eventsTable } from './tables/events.ts'
import { feedbackTable } from './tables/feedback.ts'
import { positionsTable, readTradedPositions } from './tables/positions.ts'
import { pricesTable } from './tables/posted-prices.ts'
import { deleteReachedTrades, type RelayedTrade, relayedTradesTable } from './tables/relayed-trades.ts'
import { insertReorg, type Reorg } from './tables/reorgs.ts'
import { samplingTable, unsampledTable } from './tables/sampling-progress.ts'
import { standingsTable } from './tables/standings.ts'
import type { IndexTable } from './tables/table.ts'
import { trackRecordsTable } from './tables/track-records.ts'
import { tradesTable } from './tables/trades.ts'
import { vaultWorthTable } from './tables/vault-worth-samples.ts'

/** The tables that are filled from events. A new one is added here and gets its rows in index-rows.ts. */
const eventTables = {
  trades: tradesTable,
  positions: positionsTable,
  agents: agentsTable,
  prices: pricesTable,
  events: eventsTable,
  blocks: blocksTable,
}
const allTables = [
  ...Object.values(eventTables),
  relayedTradesTable, // from receipts
  unsampledTable,
  equityTable,
  vaultWorthTable,
  samplingTable,
  trackRecordsTable,
  standingsTable,
  feedbackTable,
]

type EventTables = typeof eventTables
type RowTypes = { [Name in keyof EventTables]: EventTables[Name] extends IndexTable<infer Row> ? Row : never }

/** The rows of a range of blocks, oldest first. */
export type IndexRows = { [Name in keyof RowTypes]: RowTypes[Name][] }

const tablesByName: { [Name in keyof RowTypes]: IndexTable<RowTypes[Name]> } = eventTables

function insertRows<Name extends keyof RowTypes>(db: D1Database, name: Name, rows: IndexRows): D1PreparedStatement[] {
  return tablesByName[name].insert(db, rows[name])
}

export type IndexStore = ReturnType<typeof openIndexStore>

/** Opens the index for its only writer. `indexKey` names the chain and the contracts that it is of. */
export function openIndexStore(db: D1Database, indexKey: string) {
  return {
    /** Applies pending migrations, as `wrangler d1 migrations apply` would. */
    async migrate(): Promise<void> {
      await db.prepare(CREATE_MIGRATIONS_TABLE).run()
      const { results } = await db.prepare('SELECT name FROM d1_migrations').all<{ name: string }>()
      const applied = new Set(results.map(({ name }) => name))
      for (const { name, statements } of migrations.filter(({ name }) => !applied.has(name)))
        await db.batch([
          ...statements.map(statement => db.prepare(statement)),
          db.prepare('INSERT INTO d1_migrations (name) VALUES (?1)').bind(name),
        ])
    },

    /** Reads the cursor; undefined if there is none, or if the index is of other contracts. */
    readCursor: async (): Promise<IndexCursor | undefined> =>
      toCursor(await selectCursor(db).first<Record<string, unknown>>(), indexKey),

    /**
     * Deletes the cursor: no read uses the index then, and `deleteObsolete` deletes the rows from events. Samples stay. A
     * cursor of other contracts stays too, because it says that everything must be deleted.
     */
    async dropCursor(): Promise<void> {
      await db.prepare('DELETE FROM cursor WHERE scope = ?1').bind(indexKey).run()
    },

    /** Voids the cursor: no read uses the index then, and `deleteObsolete` deletes everything but the list of reorgs. */
    async discard(): Promise<void> {
      await db.prepare("UPDATE cursor SET scope = '', hash = ''").run()
    },

    /**
     * Deletes a page of rows that belong to no cursor: rows from events if there is none, and everything but the list of reorgs if
     * it is of other contracts. Returns whether more are left, so deletion resumes after an interruption.
     */
    async deleteObsolete(): Promise<boolean> {
      const row = await selectCursor(db).first<Record<string, unknown>>()
      if (toCursor(row, indexKey) !== undefined) return false
      if (await deletePage(db, row === null ? EVENT_TABLES : ALL_TABLES)) return true
      await db.batch([
        ...['vault_agents', 'owner_agents'].map(table => db.prepare(`DELETE FROM ${table}`)),
        ...(row === null ? [] : [db.prepare('DELETE FROM vault_use')]),
        db.prepare('UPDATE sampling SET prices_thinned_to = -1'),
        db.prepare('DELETE FROM cursor'),
      ])
      return false
    },

    /** Adds the rows of the blocks after `from` up to `to`, and moves the cursor to `to`, or throws CursorMoved. */
    async append(from: IndexCursor | undefined, to: IndexCursor, rows: IndexRows): Promise<void> {
      const blocks = [...rows.blocks, { number: to.block, hash: to.hash }]
      const kept = blocks.filter(({ number }) => number > to.final || number === to.block)
      const names = Object.keys(eventTables) as (keyof EventTables)[]
      await commitAtCursor(db, from?.hash, [
        deleteReachedTrades(db, to.block),
        ...names.flatMap(name => insertRows(db, name, { ...rows, blocks: kept })),
        deleteFinalBlocks(db, to.final),
        setCursor(db, indexKey, to),
      ])
    },

    /** Deletes everything above a common ancestor, moves the cursor there and records the reorg, or throws CursorMoved. */
    async rollback(
      from: IndexCursor,
      to: Pick<IndexCursor, 'block' | 'hash' | 'timestamp'>,
      reorg: Reorg,
    ): Promise<void> {
      await commitAtCursor(db, from.hash, [
        ...allTables.flatMap(table => table.rollback(db, to.block)),
        ...insertReorg(db, reorg),
        moveCursorBack(db, to),
      ])
    },

    /** Adds trades from receipts. The chain's own rows replace them once the cursor has reached their blocks. */
    async addRelayed(trades: readonly RelayedTrade[]): Promise<void> {
      await db.batch(relayedTradesTable.insert(db, trades))
    },

    /** Reads the blocks that a reorg could still replace, newest first. */
    readBlocks: () => readBlocks(db),

    /** Reads the token and vault of positions. Positions that the index does not have are left out. */
    readPositions: (ids: readonly bigint[]) => readTradedPositions(db, ids),

    /** Reads agents at the cursor. Agents that the index does not have are left out. */
    readAgents: (ids: readonly number[]) => readCurrentAgents(db, ids),
  }
}

/** The table in which wrangler keeps the applied migrations. */
const CREATE_MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`
