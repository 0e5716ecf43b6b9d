/** How full an account's budgets are, in gas, at a time in milliseconds. */
export type GasLevel = { minute: number; day: number; at: number }

export type GasLevelTable = ReturnType<typeof gasLevelTable>

const DAY_MS = 86_400_000

type LevelRow = { account: string; minute: number; day: number; updated_at: number }

/** Returns the queries of the table of gas levels. Budgets have refilled after a day, so older rows are ignored. */
export function gasLevelTable(sql: SqlStorage) {
  return {
    recent: (): [account: string, level: GasLevel][] =>
      sql
        .exec<LevelRow>('SELECT * FROM gas_level WHERE updated_at > ?', Date.now() - DAY_MS)
        .toArray()
        .map(({ account, minute, day, updated_at }) => [account, { minute, day, at: updated_at }]),

    /** Writes the levels of several accounts in one statement. */
    write(levels: readonly (readonly [account: string, level: GasLevel])[]) {
      if (levels.length === 0) return
      sql.exec(
        `INSERT OR REPLACE INTO gas_level (account, minute, day, updated_at)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)`,
        JSON.stringify(levels.map(([account, { minute, day, at }]) => [account, minute, day, at])),
      )
    },

    prune() {
      sql.exec('DELETE FROM gas_level WHERE updated_at <= ?', Date.now() - DAY_MS)
    },
  }
}
