import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

// The part of a Durable Object's SQL that src/ uses, over SQLite in memory. Tests of a store need no Worker with it.

const DEFINITION = /^\s*(--.*\s+)*(CREATE|DROP|ALTER)\b/i

/** Creates an empty storage. Its cursors hold all rows, and count as read what they return. */
export function createSqlStorage(): SqlStorage {
  const sqlite = new DatabaseSync(':memory:')

  /** Runs a schema: several statements, of which SQLite prepares only one at a time. */
  function define(query: string) {
    sqlite.exec(query)
    return []
  }

  function exec(query: string, ...bindings: SQLInputValue[]) {
    const rows = DEFINITION.test(query) ? define(query) : sqlite.prepare(query).all(...bindings)
    return {
      rowsRead: rows.length,
      toArray: () => rows,
      one() {
        if (rows.length !== 1) throw new Error(`Expected exactly one result from SQL query, but got ${rows.length}`)
        return rows[0]
      },
      [Symbol.iterator]: () => rows[Symbol.iterator](),
    }
  }

  return { exec } as unknown as SqlStorage
}
