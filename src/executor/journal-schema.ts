const TABLES = `
  CREATE TABLE IF NOT EXISTS lane (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS intent (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
    target TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL, spenders TEXT NOT NULL DEFAULT '[]'
  );
  CREATE TABLE IF NOT EXISTS attempt (
    hash TEXT PRIMARY KEY, nonce INTEGER NOT NULL, digest TEXT, purpose TEXT NOT NULL, raw TEXT NOT NULL, gas INTEGER NOT NULL,
    max_fee TEXT NOT NULL, sent_at INTEGER NOT NULL, state TEXT NOT NULL, block_number INTEGER, block_hash TEXT, final INTEGER NOT NULL DEFAULT 0,
    gas_used INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE IF NOT EXISTS gas_level (
    account TEXT PRIMARY KEY, minute REAL NOT NULL, day REAL NOT NULL, updated_at INTEGER NOT NULL
  ) WITHOUT ROWID;
`

const INDEXES = `
  CREATE INDEX IF NOT EXISTS intent_group ON intent ("group", group_nonce);
  CREATE INDEX IF NOT EXISTS intent_unsettled ON intent (created_at) WHERE state IN ('prepared', 'sent');
  CREATE INDEX IF NOT EXISTS intent_pruning ON intent (prune_at);
  CREATE INDEX IF NOT EXISTS attempt_nonce ON attempt (nonce);
  CREATE INDEX IF NOT EXISTS attempt_digest ON attempt (digest);
  CREATE INDEX IF NOT EXISTS attempt_pending ON attempt (nonce, sent_at, gas, max_fee) WHERE state = 'pending';
  CREATE INDEX IF NOT EXISTS attempt_age ON attempt (sent_at);
  CREATE INDEX IF NOT EXISTS attempt_reverted ON attempt (sent_at, digest) WHERE state = 'reverted';
  CREATE INDEX IF NOT EXISTS attempt_watched ON attempt (block_number) WHERE final = 0 AND state IN ('mined', 'reverted');
`

/** Journals of version 1 use other words for an attempt's state and purpose. */
const UPGRADE_TO_VERSION_2 = `
  DROP INDEX IF EXISTS attempt_open;
  UPDATE attempt SET state = 'pending' WHERE state = 'open';
  UPDATE attempt SET state = 'replaced' WHERE state = 'impossible';
  UPDATE attempt SET purpose = 'cancel' WHERE purpose = 'noop';
`

/** Journals before version 3 do not record who pays for gas. */
const COLUMNS_OF_VERSION_3 = [
  { table: 'intent', column: 'spenders', definition: `TEXT NOT NULL DEFAULT '[]'` },
  { table: 'attempt', column: 'gas_used', definition: 'INTEGER NOT NULL DEFAULT 0' },
]

const VERSION = '3'

/** Creates the journal's tables and upgrades rows of an older version. Each step may run twice; the version is written last. */
export function migrateJournal(sql: SqlStorage): void {
  sql.exec(TABLES)
  const [row] = sql.exec<{ value: string }>(`SELECT value FROM lane WHERE name = 'schema'`).toArray()
  if (row?.value !== VERSION) {
    sql.exec(UPGRADE_TO_VERSION_2)
    for (const { table, column, definition } of COLUMNS_OF_VERSION_3)
      if (!hasColumn(sql, table, column)) sql.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${definition}`)
    sql.exec(`INSERT OR REPLACE INTO lane VALUES ('schema', ?)`, VERSION)
  }
  sql.exec(INDEXES)
}

const hasColumn = (sql: SqlStorage, table: string, column: string): boolean =>
  sql.exec('SELECT 1 FROM pragma_table_info(?) WHERE name = ?', table, column).toArray().length > 0
