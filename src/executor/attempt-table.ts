import type { Hex } from 'viem'
import type { AttemptPurpose, AttemptState } from './intent-record.ts'

/**
 * A row of the journal's attempt table: signed bytes at an account nonce. Several attempts may share a nonce; at most one
 * of them is mined. A `cancel` without a digest fills a nonce that belongs to no intent. `sentAt` is in milliseconds.
 */
export type Attempt = {
  hash: Hex
  nonce: number
  digest: Hex | null
  purpose: AttemptPurpose
  raw: Hex
  gas: number
  maxFee: bigint
  sentAt: number
  state: AttemptState
  blockNumber: number | null
  blockHash: Hex | null
  final: boolean
  /** What its receipt says; 0 until it is in a block. */
  gasUsed: number
}

const DAY_MS = 86_400_000

type AttemptRow = Record<string, SqlStorageValue>

const IS_WATCHED = `final = 0 AND state IN ('mined', 'reverted')`

/** Returns the queries of the attempt table. */
export function attemptTable(sql: SqlStorage) {
  const select = (query: string, ...bindings: SqlStorageValue[]): Attempt[] =>
    sql
      .exec<AttemptRow>(`SELECT * FROM attempt WHERE ${query}`, ...bindings)
      .toArray()
      .map(toAttempt)
  const exists = (query: string, ...bindings: SqlStorageValue[]): boolean =>
    sql.exec(`SELECT 1 FROM attempt WHERE ${query} LIMIT 1`, ...bindings).toArray().length > 0

  return {
    find: (hash: Hex) => select('hash = ?', hash)[0],
    ofIntent: (digest: Hex) => select('digest = ? ORDER BY nonce, sent_at', digest),
    atNonce: (nonce: number) => select('nonce = ? ORDER BY sent_at', nonce),
    pending: () => select(`state = 'pending' ORDER BY nonce, sent_at`),
    isPending: (hash: Hex) => exists(`hash = ? AND state = 'pending'`, hash),

    highestNonce(): number {
      const { nonce } = sql.exec<{ nonce: number | null }>('SELECT MAX(nonce) AS nonce FROM attempt').one()
      return nonce ?? -1
    },

    /**
     * Returns the attempt that replaced another one: what was mined at its nonce or for its intent, else the newest
     * pending attempt. Undefined for an attempt that was mined itself.
     */
    replacementOf({ hash, nonce, digest, state, sentAt }: Attempt): Attempt | undefined {
      if (state === 'mined' || state === 'reverted') return undefined
      const others = select(
        '(nonce = ? OR digest = ?) AND hash <> ? ORDER BY sent_at DESC, rowid DESC',
        nonce,
        digest,
        hash,
      )
      const included = others.find(other => other.state === 'mined' || other.state === 'reverted')
      return included ?? others.find(other => other.state === 'pending' && other.sentAt >= sentAt)
    },

    /** Returns how many attempts are pending, when the oldest was sent (milliseconds) and what all may cost (wei). */
    pendingTotals(): { count: number; oldest: number | undefined; cost: bigint } {
      const totals = sql
        .exec<{ count: number; oldest: number | null; cost: number | null }>(
          `SELECT COUNT(*) AS count, MIN(sent_at) AS oldest, SUM(gas * CAST(max_fee AS REAL)) AS cost
           FROM attempt WHERE state = 'pending'`,
        )
        .one()
      return {
        count: totals.count,
        oldest: totals.oldest ?? undefined,
        cost: BigInt(Math.ceil(totals.cost ?? 0)),
      }
    },

    /** Returns when the first attempt at the lowest pending nonce was sent (milliseconds). All others wait for that nonce. */
    lowestPendingSince(): number | undefined {
      const [row] = sql
        .exec<{ sent_at: number }>(
          `SELECT sent_at FROM attempt WHERE state = 'pending' ORDER BY nonce, sent_at LIMIT 1`,
        )
        .toArray()
      return row?.sent_at
    },

    /** Returns when the group's reverted transactions were sent (milliseconds), newest first, back to `since`. */
    revertsSince: (group: string, since: number): number[] =>
      sql
        .exec<{ sent_at: number }>(
          `SELECT sent_at FROM attempt CROSS JOIN intent USING (digest)
           WHERE "group" = ? AND attempt.state = 'reverted' AND sent_at > ? ORDER BY sent_at DESC`,
          group,
          since,
        )
        .toArray()
        .map(row => row.sent_at),

    insert({ hash, nonce, digest, purpose, raw, gas, maxFee, sentAt }: Attempt) {
      sql.exec(
        `INSERT INTO attempt (hash, nonce, digest, purpose, raw, gas, max_fee, sent_at, state)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending')`,
        hash,
        nonce,
        digest,
        purpose,
        raw,
        gas,
        `${maxFee}`,
        sentAt,
      )
    },

    /** Records that an attempt is in a block. The other attempts at its nonce are replaced. */
    include(
      { hash, nonce }: Attempt,
      { block, gasUsed }: { block: { number: number; hash: Hex | null }; gasUsed: number },
      state: 'mined' | 'reverted',
    ) {
      sql.exec(`UPDATE attempt SET state = 'replaced' WHERE nonce = ? AND hash <> ? AND state = 'pending'`, nonce, hash)
      sql.exec(
        'UPDATE attempt SET state = ?, block_number = ?, block_hash = ?, gas_used = ?, final = 0 WHERE hash = ?',
        state,
        block.number,
        block.hash,
        gasUsed,
        hash,
      )
    },

    /** Records that a transaction of someone else used the nonce. */
    markNonceUsedElsewhere(nonce: number) {
      sql.exec(`UPDATE attempt SET state = 'replaced' WHERE nonce = ? AND state = 'pending'`, nonce)
    },

    /** Makes every attempt at a nonce pending again after a reorg removed the block. */
    reopen(nonce: number) {
      sql.exec(
        `UPDATE attempt SET state = 'pending', block_number = NULL, block_hash = NULL, final = 0 WHERE nonce = ?`,
        nonce,
      )
    },

    /** Whether any included attempt is not final yet. */
    hasWatched: () => exists(IS_WATCHED),

    /** Returns the numbers of blocks with attempts that are not final, lowest first. */
    watchedBlocks: (from: number, limit: number): number[] =>
      sql
        .exec<{ number: number }>(
          `SELECT DISTINCT block_number AS number FROM attempt
           WHERE ${IS_WATCHED} AND block_number >= ? ORDER BY block_number LIMIT ?`,
          from,
          limit,
        )
        .toArray()
        .map(row => row.number),

    watchedIn: (blockNumber: number) => select(`${IS_WATCHED} AND block_number = ? ORDER BY nonce`, blockNumber),

    /** Deletes attempts that are not pending, are over a day old and belong to no stored intent. */
    prune() {
      sql.exec(
        `DELETE FROM attempt WHERE state <> 'pending' AND sent_at < ?
         AND (digest IS NULL OR digest NOT IN (SELECT digest FROM intent))`,
        Date.now() - DAY_MS,
      )
    },
  }
}

const toAttempt = (row: AttemptRow): Attempt => ({
  hash: row.hash as Hex,
  nonce: row.nonce as number,
  digest: row.digest as Hex | null,
  purpose: row.purpose as AttemptPurpose,
  raw: row.raw as Hex,
  gas: row.gas as number,
  maxFee: BigInt(row.max_fee as string),
  sentAt: row.sent_at as number,
  state: row.state as AttemptState,
  blockNumber: row.block_number as number | null,
  blockHash: row.block_hash as Hex | null,
  final: row.final === 1,
  gasUsed: row.gas_used as number,
})
