import type { Hex } from 'viem'
import type { Evaluation, ExitOutcome } from './client.ts'

/** What the keeper remembers of a position. Times are milliseconds of the service's clock. */
export type Entry = {
  id: bigint
  token: string
  /** How many rules had fired when it was last known. */
  fired: number
  closedAt: number | null
  /** The round of the price at which the contracts said that nothing is due. */
  triedRound: string | null
  failures: number
  nextTryAt: number
  /** What was seen when the exit was executed. */
  evaluation: Evaluation | undefined
  outcome: ExitOutcome | undefined
}

/** A transaction that was handed to the lane and whose outcome is not written down yet. */
export type Sending = { digest: Hex; ids: bigint[]; deadline: bigint; takesBatches: boolean; evaluation: Evaluation[] }

/** The newest look at all open positions: prices with 8 decimals by token. */
export type Look = { blockNumber: string; at: string; prices: Record<string, string> }

export type Book = ReturnType<typeof openBook>

/** A position that has just closed is still looked at, for a reorganisation may open it again. */
const SETTLING_MS = 60_000
/** What became of a closed position is told for this long. */
const KEEPING_MS = 7 * 86_400_000

const schema = `
  CREATE TABLE IF NOT EXISTS keeper (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS position (
    id INTEGER PRIMARY KEY, token TEXT NOT NULL, fired INTEGER NOT NULL, closed_at INTEGER, tried_round TEXT, failures INTEGER NOT NULL DEFAULT 0,
    next_try_at INTEGER NOT NULL DEFAULT 0, evaluation TEXT, outcome TEXT
  );
  CREATE INDEX IF NOT EXISTS position_closed ON position (closed_at);
  CREATE TABLE IF NOT EXISTS sending (
    digest TEXT PRIMARY KEY, ids TEXT NOT NULL, deadline INTEGER NOT NULL, takes_batches INTEGER NOT NULL, evaluation TEXT NOT NULL
  ) WITHOUT ROWID;
`

type Row = Record<string, SqlStorageValue>

/** The keeper's tables. Every function is synchronous. */
export function openBook(sql: SqlStorage) {
  sql.exec(schema)
  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<Row>(query, ...bindings).toArray()
  const run = (query: string, ...bindings: SqlStorageValue[]) => {
    sql.exec(query, ...bindings)
  }
  const get = (name: string) => rows('SELECT value FROM keeper WHERE name = ?', name)[0]?.value as string | undefined
  const set = (name: string, value: string) => {
    if (get(name) !== value) run('INSERT OR REPLACE INTO keeper (name, value) VALUES (?, ?)', name, value)
  }

  return {
    /** The highest position id that was looked at. */
    cursor: () => BigInt(get('cursor') ?? 0),
    advance: (positionId: bigint) => set('cursor', `${positionId}`),

    look: (): Look | undefined => parsed<Look>(get('look')),
    saw: (look: Look) => set('look', JSON.stringify(look)),

    /** Positions to look at: the open ones, and those that have just closed. */
    watched: (now = Date.now()): Entry[] =>
      rows('SELECT * FROM position WHERE closed_at IS NULL OR closed_at > ?', now - SETTLING_MS).map(toEntry),
    entry: (positionId: bigint): Entry | undefined =>
      rows('SELECT * FROM position WHERE id = ?', Number(positionId)).map(toEntry)[0],
    openCount: () => Number(rows('SELECT count(*) AS count FROM position WHERE closed_at IS NULL')[0]?.count ?? 0),

    put({ id, token, fired, closedAt, triedRound, failures, nextTryAt, evaluation, outcome }: Entry) {
      run(
        'INSERT OR REPLACE INTO position (id, token, fired, closed_at, tried_round, failures, next_try_at, evaluation, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
        ...[Number(id), token, fired, closedAt, triedRound, failures, nextTryAt],
        ...[evaluation, outcome].map(value => (value === undefined ? null : JSON.stringify(value))),
      )
    },

    send({ digest, ids, deadline, takesBatches, evaluation }: Sending) {
      run(
        'INSERT INTO sending (digest, ids, deadline, takes_batches, evaluation) VALUES (?, ?, ?, ?, ?)',
        ...[
          digest,
          JSON.stringify(ids.map(String)),
          Number(deadline),
          takesBatches ? 1 : 0,
          JSON.stringify(evaluation),
        ],
      )
    },
    sending: (): Sending[] =>
      rows('SELECT * FROM sending').map(row => ({
        digest: row.digest as Hex,
        ids: (parsed<string[]>(row.ids) ?? []).map(BigInt),
        deadline: BigInt(row.deadline as number),
        takesBatches: row.takes_batches === 1,
        evaluation: parsed<Evaluation[]>(row.evaluation) ?? [],
      })),
    settle: (digest: Hex) => run('DELETE FROM sending WHERE digest = ?', digest),

    prune: (now = Date.now()) => run('DELETE FROM position WHERE closed_at < ?', now - KEEPING_MS),
    /** Forgets everything: the chain has begun anew. */
    clear() {
      for (const table of ['keeper', 'position', 'sending']) run(`DELETE FROM ${table}`)
    },
  }
}

const parsed = <T>(text: SqlStorageValue | undefined): T | undefined =>
  typeof text === 'string' ? (JSON.parse(text) as T) : undefined

const toEntry = (row: Row): Entry => ({
  id: BigInt(row.id as number),
  token: row.token as string,
  fired: row.fired as number,
  closedAt: row.closed_at as number | null,
  triedRound: row.tried_round as string | null,
  failures: row.failures as number,
  nextTryAt: row.next_try_at as number,
  evaluation: parsed(row.evaluation),
  outcome: parsed(row.outcome),
})
