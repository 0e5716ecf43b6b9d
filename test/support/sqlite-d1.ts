import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

// The part of D1's interface that src/history uses, over SQLite in memory. Tests of queries need no Worker with it.

/** A database in memory, and what ran on it: each statement with the number of rows it returned. */
export type SqliteD1 = { db: D1Database; sqlite: DatabaseSync; ran: { sql: string; rows: number }[] }

/** Creates an empty database. */
export function createSqliteD1(): SqliteD1 {
  const sqlite = new DatabaseSync(':memory:')
  const ran: SqliteD1['ran'] = []

  function statement(sql: string, values: SQLInputValue[] = []) {
    function runNow() {
      const before = totalChanges()
      const results = sqlite.prepare(sql).all(...values)
      ran.push({ sql, rows: results.length })
      return { success: true, results, meta: { changes: totalChanges() - before, rows_read: results.length } }
    }
    return {
      bind: (...bindings: SQLInputValue[]) => statement(sql, bindings),
      runNow,
      run: async () => runNow(),
      all: async () => runNow(),
      raw: async () => runNow().results.map(row => Object.values(row)),
      first: async (column?: string) => {
        const [row = null] = runNow().results
        return row === null || column === undefined ? row : row[column]
      },
    }
  }

  const totalChanges = () => Number(sqlite.prepare('SELECT total_changes() AS changes').get()?.changes)

  async function batch(statements: ReturnType<typeof statement>[]) {
    sqlite.exec('BEGIN')
    try {
      const results = statements.map(({ runNow }) => runNow())
      sqlite.exec('COMMIT')
      return results
    } catch (error) {
      sqlite.exec('ROLLBACK')
      throw error
    }
  }

  const db = { prepare: (sql: string) => statement(sql), batch, withSession: () => db }
  return { db: db as unknown as D1Database, sqlite, ran }
}
