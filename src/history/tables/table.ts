import { batchesOf } from '../../concurrency.ts'

/** A table that is filled row by row, and whose rows a reorg can undo. */
export type IndexTable<Row> = {
  /** Returns statements that add rows. Existing rows stay. */
  insert(db: D1Database, rows: readonly Row[]): D1PreparedStatement[]
  /** Returns statements that undo the writes of blocks above `block`. */
  rollback(db: D1Database, block: number): D1PreparedStatement[]
}

/** What prepares statements: a database, or a session of one. */
export type Preparer = Pick<D1Database, 'prepare'>

/**
 * A value that JSON and SQLite can both represent. Amounts are digit strings, because SQLite's integers have 64 bits.
 */
export type ColumnValue = string | number | null

/** The columns of a table, each with the value that a row has in it. */
export type Columns<Row> = Record<string, (row: Row) => ColumnValue>

/** A row of a query. */
export type SqlRow = Record<string, unknown>
/** A row of a table with these columns. */
export type RowOf<Table extends Columns<never>> = { [column in keyof Table]: ReturnType<Table[column]> }

export async function readRows<Found extends object>(
  db: Preparer,
  sql: string,
  ...values: readonly ColumnValue[]
): Promise<Found[]> {
  const { results } = await db
    .prepare(sql)
    .bind(...values)
    .all<Found>()
  return results
}

/** Runs queries in one transaction, and returns the rows of each. */
export async function readBatch(
  db: Pick<D1Database, 'batch'>,
  queries: readonly D1PreparedStatement[],
): Promise<SqlRow[][]> {
  if (queries.length === 0) return []
  const found = await db.batch<SqlRow>([...queries])
  return found.map(({ results }) => results)
}

/** Defines a table with a column `block`. A row whose primary key exists stays as it is. */
export function defineTable<Row>(name: string, columns: Columns<Row>): IndexTable<Row> {
  const names = Object.keys(columns)
  const values = names.map((_, index) => `value ->> ${index}`)
  const sql = `INSERT INTO ${name} (${names.join(', ')}) SELECT ${values.join(', ')}
    FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`
  return {
    insert: (db, rows) =>
      bindRows(
        db,
        sql,
        rows.map(row => Object.values(columns).map(toValue => toValue(row))),
      ),
    rollback: (db, block) => [deleteAbove(db, name, block)],
  }
}

export const deleteAbove = (db: D1Database, table: string, block: number): D1PreparedStatement =>
  db.prepare(`DELETE FROM ${table} WHERE block > ?1`).bind(block)

/** The most rows and bytes per statement. A bound parameter may have 2 MB. */
const MAX_ROWS = 2_000
const MAX_BYTES = 1_000_000
const MAX_UTF8_BYTES_PER_UTF16_UNIT = 3

/**
 * Binds rows as JSON arrays to `?1` of a statement; rows that do not fit into one parameter are split over several
 * statements.
 */
export function bindRows(
  db: D1Database,
  sql: string,
  rows: readonly (readonly ColumnValue[])[],
): D1PreparedStatement[] {
  const chunks: string[][] = []
  let bytes = 0
  for (const row of rows.map(row => JSON.stringify(row))) {
    const chunk = chunks.at(-1)
    bytes += row.length * MAX_UTF8_BYTES_PER_UTF16_UNIT
    if (chunk && chunk.length < MAX_ROWS && bytes <= MAX_BYTES) chunk.push(row)
    else {
      chunks.push([row])
      bytes = row.length * MAX_UTF8_BYTES_PER_UTF16_UNIT
    }
  }
  return chunks.map(chunk => db.prepare(sql).bind(`[${chunk.join(',')}]`))
}

/** Splits keys into lists that each fit into one parameter of a statement. */
export const chunkKeys = <Key>(keys: readonly Key[]): Key[][] => batchesOf(keys, MAX_ROWS)
