import type { Address, Hex } from 'viem'
import type { AttemptRecord, Call, IntentRecord, IntentState, Kind, Relay } from './client.ts'

/** An intent as the journal keeps it. Times are milliseconds; the deadline and `pruneAt` are Unix seconds. */
export type Intent = {
  digest: Hex
  kind: Kind
  group: string
  groupNonce: string
  deadline: number
  call: Call
  state: IntentState
  revertData: Hex | null
  reason: string | null
  blockNumber: number | null
  createdAt: number
  updatedAt: number
}

/**
 * Signed bytes at a nonce. Several may share one nonce, at most one of them is ever mined. `noop` is a transfer of
 * nothing to ourselves: it fills a nonce whose intent must not execute any more.
 */
export type Attempt = {
  hash: Hex
  nonce: number
  digest: Hex | null
  purpose: 'call' | 'noop'
  raw: Hex
  gas: number
  maxFee: bigint
  sentAt: number
  state: 'open' | 'mined' | 'reverted' | 'impossible'
  blockNumber: number | null
  blockHash: Hex | null
  final: boolean
}

/** An attempt that has just been signed. */
export type NewAttempt = Omit<Attempt, 'state' | 'blockNumber' | 'blockHash' | 'final'>

export type Journal = ReturnType<typeof openJournal>

const schema = `
  CREATE TABLE IF NOT EXISTS lane (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS intent (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
    target TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS intent_group ON intent ("group", group_nonce);
  CREATE INDEX IF NOT EXISTS intent_unsettled ON intent (created_at) WHERE state IN ('prepared', 'sent');
  CREATE INDEX IF NOT EXISTS intent_pruning ON intent (prune_at);
  CREATE TABLE IF NOT EXISTS attempt (
    hash TEXT PRIMARY KEY, nonce INTEGER NOT NULL, digest TEXT, purpose TEXT NOT NULL, raw TEXT NOT NULL, gas INTEGER NOT NULL,
    max_fee TEXT NOT NULL, sent_at INTEGER NOT NULL, state TEXT NOT NULL, block_number INTEGER, block_hash TEXT, final INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX IF NOT EXISTS attempt_nonce ON attempt (nonce);
  CREATE INDEX IF NOT EXISTS attempt_digest ON attempt (digest);
  CREATE INDEX IF NOT EXISTS attempt_open ON attempt (nonce, sent_at, gas, max_fee) WHERE state = 'open';
  CREATE INDEX IF NOT EXISTS attempt_age ON attempt (sent_at);
  CREATE INDEX IF NOT EXISTS attempt_reverted ON attempt (sent_at, digest) WHERE state = 'reverted';
  CREATE INDEX IF NOT EXISTS attempt_watched ON attempt (block_number) WHERE final = 0 AND state IN ('mined', 'reverted');
`

const DAY_SECONDS = 86_400
/** A signed body may name any deadline; its rows are not kept longer than this many seconds for it. */
const LONGEST_DEADLINE_SECONDS = 7 * DAY_SECONDS

type Row = Record<string, SqlStorageValue>
/** What a lane remembers beside its intents; `foreign` lists when others used its key, in milliseconds. */
type Fact = 'address' | 'genesis' | 'foreign'

/**
 * The lane's tables. Every function is synchronous: what one turn writes becomes durable before a byte leaves. `onChange` is
 * told of every intent whose state changes.
 */
export function openJournal(sql: SqlStorage, onChange: (digest: Hex) => void = () => {}) {
  sql.exec(schema)
  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<Row>(query, ...bindings).toArray()
  const run = (query: string, ...bindings: SqlStorageValue[]) => {
    sql.exec(query, ...bindings)
  }
  const nowSeconds = () => Math.floor(Date.now() / 1000)

  function writeIntent({ digest, kind, group, groupNonce, deadline, call }: Relay, state: IntentState) {
    const now = Date.now()
    const deadlineSeconds = Number(deadline > 2n ** 52n ? 2n ** 52n : deadline)
    const pruneAt = Math.min(deadlineSeconds, nowSeconds() + LONGEST_DEADLINE_SECONDS) + DAY_SECONDS
    run(
      `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, target, data, state, created_at, updated_at, prune_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)
       ON CONFLICT (digest) DO UPDATE SET target = ?6, data = ?7, state = ?8, revert_data = NULL, reason = NULL,
         block_number = NULL, updated_at = ?9, prune_at = ?10`,
      ...[digest, kind, group, groupNonce, deadlineSeconds, call.to, call.data, state, now, pruneAt],
    )
    onChange(digest)
  }

  return {
    get: (name: Fact) => rows('SELECT value FROM lane WHERE name = ?', name)[0]?.value as string | undefined,
    set: (name: Fact, value: string) =>
      run('INSERT INTO lane VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2', name, value),
    /** Forgets everything: the journal of a chain that no longer exists. */
    clear() {
      run('DELETE FROM intent')
      run('DELETE FROM attempt')
    },

    intent: (digest: Hex) => rows('SELECT * FROM intent WHERE digest = ?', digest).map(toIntent)[0],
    /** The digest that holds a group's nonce: in flight or executed. */
    holder: (group: string, groupNonce: string) =>
      rows(
        `SELECT digest FROM intent WHERE "group" = ? AND group_nonce = ? AND state NOT IN ('rejected', 'reverted')`,
        group,
        groupNonce,
      )[0]?.digest as Hex | undefined,
    unsettled: () => rows(`SELECT * FROM intent WHERE state IN ('prepared', 'sent') ORDER BY created_at`).map(toIntent),
    /** Unsettled intents whose bytes have all become impossible: they need a new nonce, or an end. */
    orphans: () =>
      rows(
        `SELECT * FROM intent WHERE state IN ('prepared', 'sent')
         AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.digest = intent.digest AND attempt.state = 'open')`,
      ).map(toIntent),
    /** Milliseconds at which the group's transactions reverted, newest first, since the given time. */
    revertsSince: (group: string, since: number) =>
      rows(
        `SELECT sent_at FROM attempt CROSS JOIN intent USING (digest) WHERE "group" = ? AND attempt.state = 'reverted' AND sent_at > ?
         ORDER BY sent_at DESC`,
        group,
        since,
      ).map(row => row.sent_at as number),

    /** Keeps a refusal for whoever asks after it; the same digest may be tried again. */
    reject(relay: Relay, refusal: { data?: Hex | undefined; reason?: string | undefined }) {
      writeIntent(relay, 'rejected')
      run(
        'UPDATE intent SET revert_data = ?, reason = ? WHERE digest = ?',
        refusal.data ?? null,
        refusal.reason ?? null,
        relay.digest,
      )
    },
    prepare(relay: Relay, attempt: NewAttempt) {
      writeIntent(relay, 'prepared')
      insertAttempt(attempt)
    },
    insertAttempt,
    setIntent(
      digest: Hex,
      state: IntentState,
      facts: { revertData?: Hex; reason?: string; blockNumber?: number } = {},
    ) {
      run(
        'UPDATE intent SET state = ?, revert_data = ?, reason = ?, block_number = ?, updated_at = ? WHERE digest = ?',
        ...[state, facts.revertData ?? null, facts.reason ?? null, facts.blockNumber ?? null, Date.now(), digest],
      )
      onChange(digest)
    },
    setReason: (digest: Hex, reason: string) => run('UPDATE intent SET reason = ? WHERE digest = ?', reason, digest),
    markSent(digest: Hex) {
      run(
        `UPDATE intent SET state = 'sent', updated_at = ? WHERE digest = ? AND state = 'prepared'`,
        Date.now(),
        digest,
      )
      onChange(digest)
    },

    attempt: (hash: Hex) => rows('SELECT * FROM attempt WHERE hash = ?', hash).map(toAttempt)[0],
    attemptsOf: (digest: Hex) =>
      rows('SELECT * FROM attempt WHERE digest = ? ORDER BY nonce, sent_at', digest).map(toAttempt),
    /** What has taken the place of an attempt: what was mined at its nonce or for its intent, else the newest bytes. */
    successorOf({ hash, nonce, digest, state, sentAt }: Attempt): Attempt | undefined {
      if (state === 'mined' || state === 'reverted') return undefined
      const others = rows(
        'SELECT * FROM attempt WHERE (nonce = ? OR digest = ?) AND hash <> ? ORDER BY sent_at DESC, rowid DESC',
        ...[nonce, digest, hash],
      ).map(toAttempt)
      const included = others.find(other => other.state === 'mined' || other.state === 'reverted')
      return included ?? others.find(other => other.state === 'open' && other.sentAt >= sentAt)
    },
    attemptsAt: (nonce: number) => rows('SELECT * FROM attempt WHERE nonce = ? ORDER BY sent_at', nonce).map(toAttempt),
    open: () => rows(`SELECT * FROM attempt WHERE state = 'open' ORDER BY nonce, sent_at`).map(toAttempt),
    /** How many transactions are open, since when the oldest is, and what all of them may cost in wei. */
    pending() {
      const [row] = rows(
        `SELECT COUNT(*) AS count, MIN(sent_at) AS oldest, SUM(gas * CAST(max_fee AS REAL)) AS cost FROM attempt WHERE state = 'open'`,
      )
      return {
        count: (row?.count ?? 0) as number,
        oldest: (row?.oldest ?? undefined) as number | undefined,
        cost: BigInt(Math.ceil((row?.cost ?? 0) as number)),
      }
    },
    /** Milliseconds at which the open transaction that all others wait for was sent first; it is the lowest nonce's. */
    oldestOpen: () =>
      rows(`SELECT sent_at FROM attempt WHERE state = 'open' ORDER BY nonce, sent_at LIMIT 1`)[0]?.sent_at as
        | number
        | undefined,
    isOpen: (hash: Hex) => rows(`SELECT 1 FROM attempt WHERE hash = ? AND state = 'open'`, hash).length > 0,
    highestNonce: () => (rows('SELECT MAX(nonce) AS nonce FROM attempt')[0]?.nonce ?? -1) as number,

    /** One of a nonce's attempts is in a block: it counts, and the others have become impossible. */
    include({ hash, nonce }: Attempt, block: { number: number; hash: Hex | null }, state: 'mined' | 'reverted') {
      run(`UPDATE attempt SET state = 'impossible' WHERE nonce = ? AND hash <> ? AND state = 'open'`, nonce, hash)
      run(
        'UPDATE attempt SET state = ?, block_number = ?, block_hash = ?, final = 0 WHERE hash = ?',
        state,
        block.number,
        block.hash,
        hash,
      )
    },
    /** The nonce was used by a transaction that is not ours. */
    supersede: (nonce: number) =>
      run(`UPDATE attempt SET state = 'impossible' WHERE nonce = ? AND state = 'open'`, nonce),
    /** A block was lost: every attempt of the nonce may be mined again. */
    reopen: (nonce: number) =>
      run(
        `UPDATE attempt SET state = 'open', block_number = NULL, block_hash = NULL, final = 0 WHERE nonce = ?`,
        nonce,
      ),

    /** The blocks with attempts that are not final yet, from the given number on, lowest first. */
    watchedBlocks: (from: number, limit: number) =>
      rows(
        `SELECT DISTINCT block_number AS number FROM attempt
         WHERE final = 0 AND state IN ('mined', 'reverted') AND block_number >= ? ORDER BY block_number LIMIT ?`,
        from,
        limit,
      ).map(row => row.number as number),
    watchedIn: (blockNumber: number) =>
      rows(
        `SELECT * FROM attempt WHERE final = 0 AND state IN ('mined', 'reverted') AND block_number = ? ORDER BY nonce`,
        blockNumber,
      ).map(toAttempt),
    isWatching: () =>
      rows(`SELECT 1 FROM attempt WHERE final = 0 AND state IN ('mined', 'reverted') LIMIT 1`).length > 0,
    /** Makes final what was mined up to a block. */
    finalize(blockNumber: number) {
      const finals = rows(
        `UPDATE intent SET state = 'final' WHERE state = 'mined' AND digest IN
         (SELECT digest FROM attempt WHERE final = 0 AND state IN ('mined', 'reverted') AND purpose = 'call' AND block_number <= ?)
         RETURNING digest`,
        blockNumber,
      )
      for (const { digest } of finals) onChange(digest as Hex)
      run(
        `UPDATE attempt SET final = 1 WHERE final = 0 AND state IN ('mined', 'reverted') AND block_number <= ?`,
        blockNumber,
      )
    },

    /** Reclaims the settled rows whose time has passed. */
    prune() {
      run(`DELETE FROM intent WHERE prune_at < ? AND state NOT IN ('prepared', 'sent', 'mined')`, nowSeconds())
      run(
        `DELETE FROM attempt WHERE state <> 'open' AND sent_at < ? AND (digest IS NULL OR digest NOT IN (SELECT digest FROM intent))`,
        Date.now() - DAY_SECONDS * 1000,
      )
    },
    /** Unix seconds at which the next row can be reclaimed, or undefined when there is none. */
    nextPruning: () => (rows('SELECT MIN(prune_at) AS at FROM intent')[0]?.at ?? undefined) as number | undefined,
  }

  function insertAttempt({ hash, nonce, digest, purpose, raw, gas, maxFee, sentAt }: NewAttempt) {
    run(
      `INSERT INTO attempt (hash, nonce, digest, purpose, raw, gas, max_fee, sent_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open')`,
      ...[hash, nonce, digest, purpose, raw, gas, `${maxFee}`, sentAt],
    )
  }
}

const toIntent = (row: Row): Intent => ({
  digest: row.digest as Hex,
  kind: row.kind as Kind,
  group: row.group as string,
  groupNonce: row.group_nonce as string,
  deadline: row.deadline as number,
  call: { to: row.target as Address, data: row.data as Hex },
  state: row.state as IntentState,
  revertData: row.revert_data as Hex | null,
  reason: row.reason as string | null,
  blockNumber: row.block_number as number | null,
  createdAt: row.created_at as number,
  updatedAt: row.updated_at as number,
})

const toAttempt = (row: Row): Attempt => ({
  hash: row.hash as Hex,
  nonce: row.nonce as number,
  digest: row.digest as Hex | null,
  purpose: row.purpose as Attempt['purpose'],
  raw: row.raw as Hex,
  gas: row.gas as number,
  maxFee: BigInt(row.max_fee as string),
  sentAt: row.sent_at as number,
  state: row.state as Attempt['state'],
  blockNumber: row.block_number as number | null,
  blockHash: row.block_hash as Hex | null,
  final: row.final === 1,
})

const toAttemptRecord = ({ hash, nonce, purpose, state, sentAt }: Attempt): AttemptRecord => ({
  ...{ hash, nonce, sentAt: Math.floor(sentAt / 1000) },
  purpose: purpose === 'call' ? 'call' : 'cancel',
  state: state === 'impossible' ? 'superseded' : state,
})

/** An intent as the outside sees it. */
export const toRecord = (intent: Intent, attempts: readonly Attempt[]): IntentRecord => ({
  digest: intent.digest,
  kind: intent.kind,
  group: intent.group,
  groupNonce: intent.groupNonce,
  deadline: BigInt(intent.deadline),
  state: intent.state,
  attempts: attempts.map(toAttemptRecord),
  ...(intent.revertData !== null && { revertData: intent.revertData }),
  ...(intent.reason !== null && { reason: intent.reason }),
  ...(intent.blockNumber !== null && { blockNumber: BigInt(intent.blockNumber) }),
  createdAt: Math.floor(intent.createdAt / 1000),
  updatedAt: Math.floor(intent.updatedAt / 1000),
})
