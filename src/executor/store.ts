import type { Hex } from 'viem'
import { type Attempt, attemptTable } from './attempt-table.ts'
import { type AdmittedRequest, intentTable, PRUNABLE_INTENTS } from './intent-table.ts'

export type Journal = ReturnType<typeof openJournal>

/**
 * How full an account's budgets are, in gas, at a time in milliseconds: that of a minute, and the sustained one of an hour. Of a
 * shared budget, and of its members, `sustained` is a position on the budget's clock (fair-share.ts).
 */
export type GasLevel = { minute: number; sustained: number; at: number }

export type GasLevelTable = ReturnType<typeof gasLevelTable>

const DAY_MS = 86_400_000

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS lane (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  -- Reverts of one party count together.
  CREATE TABLE IF NOT EXISTS intent (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
    target TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL, spenders TEXT NOT NULL DEFAULT '[]',
    party TEXT NOT NULL, signer TEXT, note TEXT
  );
  CREATE TABLE IF NOT EXISTS attempt (
    hash TEXT PRIMARY KEY, nonce INTEGER NOT NULL, digest TEXT, purpose TEXT NOT NULL, raw TEXT NOT NULL, gas INTEGER NOT NULL,
    max_fee TEXT NOT NULL, sent_at INTEGER NOT NULL, state TEXT NOT NULL, block_number INTEGER, block_hash TEXT, final INTEGER NOT NULL DEFAULT 0,
    gas_used INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS gas_level (
    account TEXT PRIMARY KEY, minute REAL NOT NULL, sustained REAL NOT NULL, updated_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS intent_group ON intent ("group", group_nonce);
  CREATE INDEX IF NOT EXISTS intent_unsettled ON intent (created_at) WHERE state IN ('prepared', 'sent');
  CREATE INDEX IF NOT EXISTS intent_rejected ON intent ("group", updated_at) WHERE state = 'rejected' AND data = '0x';
  CREATE INDEX IF NOT EXISTS intent_pruning ON intent (prune_at);
  CREATE INDEX IF NOT EXISTS attempt_nonce ON attempt (nonce);
  CREATE INDEX IF NOT EXISTS attempt_digest ON attempt (digest);
  CREATE INDEX IF NOT EXISTS attempt_pending ON attempt (nonce, sent_at, gas, max_fee) WHERE state = 'pending';
  CREATE INDEX IF NOT EXISTS attempt_filler ON attempt (sent_at) WHERE digest IS NULL;
  CREATE INDEX IF NOT EXISTS attempt_reverted ON attempt (sent_at, digest) WHERE state = 'reverted';
  CREATE INDEX IF NOT EXISTS attempt_watched ON attempt (block_number) WHERE final = 0 AND state IN ('mined', 'reverted');
`

/**
 * Facts about the lane itself. `foreign` lists when others used its key (milliseconds) and for which nonce, as a
 * JSON array;
 * `price refresh` is when prices were last refreshed, in milliseconds; `nonce` is the account's next nonce, for when no
 * attempt shows it.
 */
type LaneFact = 'address' | 'foreign' | 'price refresh' | 'nonce'

/**
 * Opens the lane's journal. Every function is synchronous: writes of one turn of the event loop are durable before any
 * byte leaves the object. `onChange` is called with the digest of every intent whose state changes.
 */
export function openJournal(sql: SqlStorage, onChange: (digest: Hex) => void) {
  sql.exec(SCHEMA)
  const intents = intentTable(sql, onChange)
  const attempts = attemptTable(sql)
  const gasLevels = gasLevelTable(sql)

  /** The facts that were read or written since the start. */
  const facts = new Map<LaneFact, string | undefined>()

  function get(name: LaneFact): string | undefined {
    if (!facts.has(name))
      facts.set(name, sql.exec<{ value: string }>('SELECT value FROM lane WHERE name = ?', name).toArray()[0]?.value)
    return facts.get(name)
  }
  function set(name: LaneFact, value: string) {
    sql.exec('INSERT INTO lane VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2', name, value)
    facts.set(name, value)
  }

  /** Stores the account's next nonce, for when no attempt shows it. Ignores a lower one than before. */
  function setNextNonce(nonce: number) {
    if (nonce > Number(get('nonce') ?? 0)) set('nonce', `${nonce}`)
  }

  return {
    intents,
    attempts,
    gasLevels,

    get,
    set,

    /** Records intents together with their first attempts, in two statements, or more if they are large. */
    prepare(signed: readonly { request: AdmittedRequest; attempt: Attempt }[]) {
      for (const part of inParts(signed)) {
        intents.prepare(part.map(({ request }) => request))
        attempts.insert(part.map(({ attempt }) => attempt))
      }
    },

    /** Marks everything mined up to the given block as final. */
    finalize(blockNumber: number) {
      const finals = sql
        .exec<{ digest: Hex }>(
          `UPDATE intent SET state = 'final' WHERE state = 'mined' AND digest IN
           (SELECT digest FROM attempt WHERE final = 0 AND state = 'mined' AND purpose = 'call' AND block_number <= ?)
           RETURNING digest`,
          blockNumber,
        )
        .toArray()
      for (const { digest } of finals) onChange(digest)
      sql.exec(
        `UPDATE attempt SET final = 1 WHERE final = 0 AND state IN ('mined', 'reverted') AND block_number <= ?`,
        blockNumber,
      )
    },

    setNextNonce,

    /** Deletes finished rows whose retention has ended. */
    prune() {
      setNextNonce(attempts.highestNonce() + 1)
      attempts.prune(PRUNABLE_INTENTS)
      intents.prune()
      gasLevels.prune()
    },
  }
}

/** SQLite in Durable Objects accepts values of at most 2 MB. */
const MAX_CHARACTERS_PER_STATEMENT = 1_000_000

/** Splits attempts so that the rows of each part fit into one bound value. A part has at least one attempt. */
function inParts<Signed extends { attempt: Attempt }>(signed: readonly Signed[]): Signed[][] {
  const parts: Signed[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const one of signed) {
    const { length } = one.attempt.raw
    if (size + length > MAX_CHARACTERS_PER_STATEMENT) {
      parts.push([])
      size = 0
    }
    size += length
    parts.at(-1)?.push(one)
  }
  return parts
}

type LevelRow = { account: string; minute: number; sustained: number; updated_at: number }

/** Returns the queries of the table of gas levels. Budgets have refilled after a day, so older rows are ignored. */
function gasLevelTable(sql: SqlStorage) {
  return {
    recent: (): [account: string, level: GasLevel][] =>
      sql
        .exec<LevelRow>('SELECT * FROM gas_level WHERE updated_at > ?', Date.now() - DAY_MS)
        .toArray()
        .map(({ account, minute, sustained, updated_at }) => [account, { minute, sustained, at: updated_at }]),

    /** Writes the levels of several accounts in one statement. */
    write(levels: readonly (readonly [account: string, level: GasLevel])[]) {
      if (levels.length === 0) return
      sql.exec(
        `INSERT OR REPLACE INTO gas_level (account, minute, sustained, updated_at)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)`,
        JSON.stringify(levels.map(([account, { minute, sustained, at }]) => [account, minute, sustained, at])),
      )
    },

    prune() {
      sql.exec('DELETE FROM gas_level WHERE updated_at <= ?', Date.now() - DAY_MS)
    },
  }
}
