import type { Hex } from 'viem'
import type { KeeperEntry } from './keeper-entry.ts'
import type { Evaluation } from './last-evaluation.ts'
import type { ExitOutcome } from './last-exit-result.ts'

/** Exits that were handed to the lane in one transaction. `evaluations` are in the order of the positions. */
export type ExitBatch = {
  digest: Hex
  positionIds: bigint[]
  /** Unix seconds. */
  deadline: bigint
  takesBatches: boolean
  evaluations: Evaluation[]
}

/** What the last cycle saw: block, its time in Unix seconds, and prices with 8 decimals by token. */
export type LastCycle = { blockNumber: string; at: string; prices: Record<string, string> }

export type KeeperStore = ReturnType<typeof openKeeperStore>

/** A closed position is read for this much longer, because a reorg may open it again. */
const REORG_WATCH_MS = 60_000
const CLOSED_RETENTION_MS = 7 * 86_400_000

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS keeper (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS position (
    id INTEGER PRIMARY KEY, token TEXT NOT NULL, fired INTEGER NOT NULL, closed_at INTEGER, tried_round TEXT, failures INTEGER NOT NULL DEFAULT 0,
    next_try_at INTEGER NOT NULL DEFAULT 0, evaluation TEXT, outcome TEXT
  );
  CREATE INDEX IF NOT EXISTS position_closed ON position (closed_at);
  CREATE TABLE IF NOT EXISTS exit_batch (
    digest TEXT PRIMARY KEY, ids TEXT NOT NULL, deadline INTEGER NOT NULL, takes_batches INTEGER NOT NULL, evaluation TEXT NOT NULL
  ) WITHOUT ROWID;
`

/** Version 1 had other names for the table of batches, for the last cycle and for the discriminant of an outcome. */
const UPGRADE_FROM_VERSION_1 = `
  ALTER TABLE sending RENAME TO exit_batch;
  UPDATE keeper SET name = 'last_cycle' WHERE name = 'look';
  UPDATE position SET outcome = json_remove(json_set(outcome, '$.kind', json_extract(outcome, '$.is')), '$.is')
    WHERE outcome IS NOT NULL;
`

type KeeperRow = Record<string, SqlStorageValue>

/** Opens the keeper's tables. Every function is synchronous. */
export function openKeeperStore(sql: SqlStorage) {
  const isVersion1 =
    sql.exec(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sending'`).toArray().length > 0
  if (isVersion1) sql.exec(UPGRADE_FROM_VERSION_1)
  sql.exec(SCHEMA)

  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<KeeperRow>(query, ...bindings).toArray()
  const get = (name: string) => rows('SELECT value FROM keeper WHERE name = ?', name)[0]?.value as string | undefined
  function set(name: string, value: string) {
    if (get(name) !== value) sql.exec('INSERT OR REPLACE INTO keeper (name, value) VALUES (?, ?)', name, value)
  }

  return {
    /** Returns the highest position id that was read. */
    cursor: () => BigInt(get('cursor') ?? 0),
    advanceCursor: (positionId: bigint) => set('cursor', `${positionId}`),

    lastCycle: (): LastCycle | undefined => parseJson<LastCycle>(get('last_cycle')),
    setLastCycle: (cycle: LastCycle) => set('last_cycle', JSON.stringify(cycle)),

    /** Returns the entries to read in a cycle: open positions, and those that closed a moment ago. */
    watched: (now: number): KeeperEntry[] =>
      rows('SELECT * FROM position WHERE closed_at IS NULL OR closed_at > ?', now - REORG_WATCH_MS).map(toEntry),

    entry: (positionId: bigint): KeeperEntry | undefined =>
      rows('SELECT * FROM position WHERE id = ?', Number(positionId)).map(toEntry)[0],

    openCount: () => Number(rows('SELECT count(*) AS count FROM position WHERE closed_at IS NULL')[0]?.count ?? 0),

    put(entry: KeeperEntry) {
      sql.exec(
        `INSERT OR REPLACE INTO position
         (id, token, fired, closed_at, tried_round, failures, next_try_at, evaluation, outcome)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        Number(entry.positionId),
        entry.token,
        entry.firedRules,
        entry.closedAt,
        entry.triedRoundId,
        entry.failures,
        entry.nextTryAt,
        entry.evaluation === undefined ? null : JSON.stringify(entry.evaluation),
        entry.outcome === undefined ? null : JSON.stringify(entry.outcome),
      )
    },

    /** Records a batch before it is handed to the lane. */
    addBatch({ digest, positionIds, deadline, takesBatches, evaluations }: ExitBatch) {
      sql.exec(
        'INSERT INTO exit_batch (digest, ids, deadline, takes_batches, evaluation) VALUES (?, ?, ?, ?, ?)',
        digest,
        JSON.stringify(positionIds.map(String)),
        Number(deadline),
        takesBatches ? 1 : 0,
        JSON.stringify(evaluations),
      )
    },

    /** Returns the batches without a recorded outcome. */
    batches: (): ExitBatch[] =>
      rows('SELECT * FROM exit_batch').map(row => ({
        digest: row.digest as Hex,
        positionIds: (parseJson<string[]>(row.ids) ?? []).map(BigInt),
        deadline: BigInt(row.deadline as number),
        takesBatches: row.takes_batches === 1,
        evaluations: parseJson<Evaluation[]>(row.evaluation) ?? [],
      })),

    removeBatch(digest: Hex) {
      sql.exec('DELETE FROM exit_batch WHERE digest = ?', digest)
    },

    /** Deletes positions that closed more than a week ago. */
    prune(now: number) {
      sql.exec('DELETE FROM position WHERE closed_at < ?', now - CLOSED_RETENTION_MS)
    },

    /** Deletes everything: it belongs to a chain that no longer exists. */
    clear() {
      for (const table of ['keeper', 'position', 'exit_batch']) sql.exec(`DELETE FROM ${table}`)
    },
  }
}

const parseJson = <T>(text: SqlStorageValue | undefined): T | undefined =>
  typeof text === 'string' ? (JSON.parse(text) as T) : undefined

const toEntry = (row: KeeperRow): KeeperEntry => ({
  positionId: BigInt(row.id as number),
  token: row.token as string,
  firedRules: row.fired as number,
  closedAt: row.closed_at as number | null,
  triedRoundId: row.tried_round as string | null,
  failures: row.failures as number,
  nextTryAt: row.next_try_at as number,
  evaluation: parseJson<Evaluation>(row.evaluation),
  outcome: parseJson<ExitOutcome>(row.outcome),
})
