import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { refuse } from '../errors/refuse.ts'
import { migrations } from '../generated/migrations.ts'
import type { ChainChanges } from '../keeper/book.ts'
import { logFailure } from '../log.ts'
import { agentNamesTable } from './tables/agent-names.ts'
import { agentsTable, readCurrentAgents } from './tables/agents.ts'
import { readPricesBefore, rollbackCandles } from './tables/candles.ts'
import {
  commitAtCursor,
  extendBranch,
  type IndexCursor,
  type IndexedBlock,
  insertReorg,
  moveCursorBack,
  type Reorg,
  readBranch,
  selectCursor,
  setCursor,
  toCursor,
} from './tables/cursor.ts'
import { eventsTable, pricesTable, readOracleBefore, selectNamed, toNamed } from './tables/events.ts'
import { ordersTable } from './tables/orders.ts'
import { positionsTable, readTradedPositions } from './tables/positions.ts'
import { deleteAbove, type IndexTable, readBatch, readRows, type SqlRow } from './tables/table.ts'
import { bookTrades, tradesTable } from './tables/trades.ts'

/** Rows per transaction. A database may have millions, and a transaction may take 30 s. */
const PAGE_ROWS = 5_000

/** The primary keys of the tables that are filled from events, or computed from them. */
const EVENT_TABLES = {
  trades: 'agent_id, block, log_index',
  positions: 'position_id',
  agents: 'agent_id, block, log_index',
  agent_names: 'word, agent_id',
  prices: 'token, block, log_index',
  candles: 'token, seconds, start',
  orders: 'block, log_index',
  events: 'block, log_index',
  track_records: 'hour, part',
  standings: 'period, start, part',
  vault_books: 'vault, hour',
}

/** The primary keys of all tables that belong to one chain and its contracts. The list of reorgs does not. */
const ALL_TABLES = {
  ...EVENT_TABLES,
  feedback: 'agent_id, week_start',
  notes: 'transaction_hash',
}

/**
 * Deletes rows of tables, at most one full page, and returns whether more may be left. `tables` has their primary keys.
 */
async function deletePage(db: D1Database, tables: Readonly<Record<string, string>>): Promise<boolean> {
  for (const [table, key] of Object.entries(tables)) {
    const { meta } = await db
      .prepare(`DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} LIMIT ${PAGE_ROWS})`)
      .run()
    if (meta.changes >= PAGE_ROWS) return true
  }
  return false
}

/** The tables that are filled from events. A new one is added here and gets its rows in followed-events.ts. */
const eventTables = {
  positions: positionsTable,
  trades: tradesTable,
  agents: agentsTable,
  names: agentNamesTable,
  prices: pricesTable,
  orders: ordersTable, // before the events that end them
  events: eventsTable,
}

/** Returns statements that undo what was computed from final rows. Only a repair of the index withdraws such rows. */
const undoComputed = (db: D1Database, block: number): D1PreparedStatement[] => [
  ...['track_records', 'standings', 'vault_books'].map(table => deleteAbove(db, table, block)),
  db.prepare("DELETE FROM feedback WHERE state = 'ended' AND created_block > ?1").bind(block),
  ...rollbackCandles(db, block),
]

type TableName = keyof typeof eventTables
type EventRows = { [name in TableName]: Parameters<(typeof eventTables)[name]['insert']>[1][number][] }

/** The rows of a range of blocks, oldest first, what they change for the keeper, and the blocks that they belong to. */
export type IndexRows = Omit<EventRows, 'trades'> & { trades: Trade[]; changes: ChainChanges; blocks: IndexedBlock[] }

const insertRows = <name extends TableName>(db: D1Database, name: name, rows: EventRows): D1PreparedStatement[] =>
  (eventTables[name] as IndexTable<EventRows[name][number]>).insert(db, rows[name])

export type IndexStore = ReturnType<typeof openIndexStore>

/** Opens the index for its only writer. `indexKey` names the chain and the contracts that it is of. */
export function openIndexStore(db: D1Database, indexKey: string) {
  return {
    /** Applies pending migrations, as `wrangler d1 migrations apply` would. */
    async migrate(): Promise<void> {
      await db.prepare(CREATE_MIGRATIONS_TABLE).run()
      const rows = await readRows<{ name: string }>(db, APPLIED)
      const applied = new Set(rows.map(({ name }) => name))
      for (const { name, statements } of migrations.filter(({ name }) => !applied.has(name)))
        await db
          .batch([
            ...statements.map(statement => db.prepare(statement)),
            db.prepare('INSERT INTO d1_migrations (name) VALUES (?1)').bind(name),
          ])
          .catch(error => {
            logFailure('migration failure', error, { name })
            throw error
          })
    },

    /** Reads the cursor; undefined if there is none, or if the index is of other contracts. */
    readCursor: async (): Promise<IndexCursor | undefined> =>
      toCursor(await selectCursor(db).first<SqlRow>(), indexKey),

    /**
     * Deletes the cursor: no read uses the index then, and `deleteObsolete` deletes the rows from events. A cursor of
     * other contracts stays, because it says that everything must be deleted.
     */
    async dropCursor(): Promise<void> {
      await db.prepare('DELETE FROM cursor WHERE scope = ?1').bind(indexKey).run()
    },

    /**
     * Voids the cursor: no read uses the index then, and `deleteObsolete` deletes everything but the list of reorgs.
     */
    async discard(): Promise<void> {
      await db.prepare("UPDATE cursor SET scope = '', hash = ''").run()
    },

    /**
     * Deletes a page of rows that belong to no cursor: rows from events if there is none, and everything but the list
     * of reorgs if it is of other contracts. Returns whether more are left, so deletion resumes after an interruption.
     */
    async deleteObsolete(): Promise<boolean> {
      const row = await selectCursor(db).first<SqlRow>()
      if (toCursor(row, indexKey) !== undefined) return false
      if (await deletePage(db, row === null ? EVENT_TABLES : ALL_TABLES)) return true
      await db.batch([
        ...['vault_agents', 'owner_agents', 'vault_use'].map(table => db.prepare(`DELETE FROM ${table}`)),
        db.prepare('DELETE FROM cursor'),
      ])
      return false
    },

    /** Adds the rows of the blocks after `from` up to `to`, and moves the cursor to `to`, or throws CursorMoved. */
    async append(from: IndexCursor | undefined, to: IndexCursor, rows: IndexRows): Promise<void> {
      const before = from === undefined ? [] : await readBranch(db)
      const branch = extendBranch(before, [...rows.blocks, { number: to.block, hash: to.hash }], to.final)
      const booked = { ...rows, trades: await bookTrades(db, rows.trades, rows.events) }
      const names = Object.keys(eventTables) as TableName[]
      await commitAtCursor(db, from?.hash, [
        ...names.flatMap(name => insertRows(db, name, booked)),
        setCursor(db, indexKey, to, branch),
      ])
    },

    /**
     * Deletes everything above a common ancestor, moves the cursor there and records the reorg, or throws CursorMoved.
     */
    async rollback(
      from: IndexCursor,
      to: Pick<IndexCursor, 'block' | 'hash' | 'timestamp'>,
      reorg: Reorg,
    ): Promise<void> {
      const branch = (await readBranch(db)).filter(({ number }) => number <= to.block)
      await commitAtCursor(db, from.hash, [
        ...Object.values(eventTables).flatMap(table => table.rollback(db, to.block)),
        ...(to.block < from.final ? undoComputed(db, to.block) : []),
        ...insertReorg(db, reorg),
        moveCursorBack(db, to, branch),
      ])
    },

    /** Reads where a range of blocks has rows from logs, each as block and log index. */
    async readPlaces({ fromBlock, toBlock }: { fromBlock: number; toBlock: number }): Promise<Set<string>> {
      const places = ['trades', 'prices', 'orders', 'events'].map(table =>
        db
          .prepare(`SELECT block || ':' || log_index AS place FROM ${table} WHERE block BETWEEN ?1 AND ?2`)
          .bind(fromBlock, toBlock),
      )
      return new Set((await readBatch(db, places)).flat().map(({ place }) => place as string))
    },

    readBranch: () => readBranch(db),
    readPositions: (ids: readonly bigint[]) => readTradedPositions(db, ids),

    /** Reads the replaceable contracts that permanent ones have named up to the cursor. */
    readNamed: async (chain: Chain) => toNamed(chain, (await selectNamed(db, chain).all<SqlRow>()).results),
    readOracleBefore: (tokenRegistry: Address, block: number) => readOracleBefore(db, tokenRegistry, block),
    readPricesBefore: (tokens: readonly Address[], block: number) => readPricesBefore(db, tokens, block),
    readAgents: (ids: readonly number[]) => readCurrentAgents(db, ids),
  }
}

/** The table in which wrangler keeps the applied migrations. */
const CREATE_MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`

const APPLIED = 'SELECT name FROM d1_migrations'

/** The names of the migrations, in order. `unknown` are those of the database that this version lacks. */
export type MigrationState = { applied: string[]; pending: string[]; unknown: string[] }

/** Reads which migrations a database has: none if it lacks the table of migrations. Throws HISTORY_UNAVAILABLE. */
export async function readMigrationState(db: D1Database): Promise<MigrationState> {
  const rows = await readRows<{ name: string }>(db, APPLIED).catch(error => {
    if (error instanceof Error && /no such table/.test(error.message)) return []
    throw refuse('HISTORY_UNAVAILABLE', {}, { cause: error })
  })
  const names = new Set(rows.map(({ name }) => name))
  return {
    applied: migrations.filter(({ name }) => names.has(name)).map(({ name }) => name),
    pending: migrations.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    unknown: [...names].filter(name => !migrations.some(each => each.name === name)),
  }
}
