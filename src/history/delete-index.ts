/** Rows per transaction. A database with the samples of a year has millions, and a transaction may take 30 s. */
const PAGE_ROWS = 5_000

/** The primary keys of the tables that are filled from events and receipts. */
export const EVENT_TABLES = {
  trades: 'agent_id, block, log_index',
  positions: 'position_id',
  agents: 'agent_id, block, log_index',
  prices: 'token, block, log_index',
  events: 'block, log_index',
  blocks: 'number',
  relayed: 'agent_id, block, log_index',
}

/** The primary keys of all tables that belong to one chain and its contracts. The list of reorgs does not. */
export const ALL_TABLES = {
  ...EVENT_TABLES,
  unsampled: 'agent_id',
  equity: 'agent_id, timestamp, block',
  vault_worth: 'vault, timestamp, block',
  sampling: 'id',
  track_records: 'agent_id, capital_mode, block',
  standings: 'agent_id, capital_mode, period, start, block',
  feedback: 'agent_id, week_start',
}

/** Deletes rows of tables, at most one full page, and returns whether more may be left. `tables` has their primary keys. */
export async function deletePage(db: D1Database, tables: Readonly<Record<string, string>>): Promise<boolean> {
  for (const [table, key] of Object.entries(tables)) {
    const { meta } = await db
      .prepare(`DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} LIMIT ${PAGE_ROWS})`)
      .run()
    if (meta.changes >= PAGE_ROWS) return true
  }
  return false
}
