/**
 * How full an account's budgets are, in gas, at a time in milliseconds: that of a minute, and the sustained one of an hour. Of a
 * shared budget, and of its members, `sustained` is a position on the budget's clock (fair-share.ts).
 */
export type GasLevel = { minute: number; sustained: number; at: number }

/** Gas levels by account. */
export type GasLevels = Record<string, GasLevel>

export type GasLevelTable = ReturnType<typeof gasLevelTable>

const DAY_MS = 86_400_000

type LevelRow = { account: string; minute: number; sustained: number; updated_at: number }

/**
 * Returns the stored gas levels: those that inclusions charged are in the rows of their attempts, those that failed simulations
 * charged in a table. Budgets have refilled after a day, so older levels are ignored.
 */
export function gasLevelTable(sql: SqlStorage, attempts: { levelsSince: (since: number) => Iterable<GasLevels> }) {
  function* all(since: number): Iterable<[account: string, level: GasLevel]> {
    const rows = sql.exec<LevelRow>('SELECT * FROM gas_level').toArray()
    for (const { account, minute, sustained, updated_at } of rows)
      yield [account, { minute, sustained, at: updated_at }]
    for (const levels of attempts.levelsSince(since)) yield* Object.entries(levels)
  }

  return {
    /** Returns the newest level of each account that was charged within a day. */
    recent(): [account: string, level: GasLevel][] {
      const since = Date.now() - DAY_MS
      const newest = new Map<string, GasLevel>()
      for (const [account, level] of all(since))
        if (level.at > Math.max(since, newest.get(account)?.at ?? 0)) newest.set(account, level)
      return [...newest]
    },

    /** Writes the levels of several accounts in one statement. */
    write(levels: GasLevels) {
      sql.exec(
        `INSERT OR REPLACE INTO gas_level (account, minute, sustained, updated_at)
         SELECT key, value ->> 'minute', value ->> 'sustained', value ->> 'at' FROM json_each(?)`,
        JSON.stringify(levels),
      )
    },

    prune() {
      sql.exec('DELETE FROM gas_level WHERE updated_at <= ?', Date.now() - DAY_MS)
    },
  }
}
