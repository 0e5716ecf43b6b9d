import type { Hex } from 'viem'
import type { Revert } from './revert-counter.ts'

/** `call`: carries the intent. `cancel`: a zero-value transfer that fills the nonce so the call can no longer be mined. */
export type AttemptPurpose = 'call' | 'cancel'

/** Of the attempts at one nonce at most one is mined. The others are `replaced`. */
export type AttemptState = 'pending' | 'mined' | 'reverted' | 'replaced'

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
  /** From its receipt, without the gas for L1, which no budget counts; 0 until it is mined. */
  gasUsed: number
}

/** What callers learn about an attempt. */
export type AttemptSummary = Pick<Attempt, 'hash' | 'nonce' | 'digest' | 'purpose' | 'state' | 'sentAt'>

const DAY_MS = 86_400_000

type AttemptRow = Record<string, SqlStorageValue>

const IS_WATCHED = `final = 0 AND state IN ('mined', 'reverted')`

/** The result of an attempt, from its receipt. */
export type Inclusion = {
  attempt: Attempt
  state: 'mined' | 'reverted'
  block: { number: number; hash: Hex | null }
  gasUsed: number
}

/**
 * Returns the queries of the attempt table. Pending attempts are also kept in memory, because every intent reads them
 * several times. If a write does not become durable, the object restarts and reads them again.
 */
export function attemptTable(sql: SqlStorage) {
  const select = (query: string, ...bindings: SqlStorageValue[]): Attempt[] =>
    sql
      .exec<AttemptRow>(`SELECT * FROM attempt WHERE ${query}`, ...bindings)
      .toArray()
      .map(toAttempt)
  const exists = (query: string, ...bindings: SqlStorageValue[]): boolean =>
    sql.exec(`SELECT 1 FROM attempt WHERE ${query} LIMIT 1`, ...bindings).toArray().length > 0

  const pending = new Map<Hex, Attempt>()
  const pendingHashes = new Map<number, Set<Hex>>()
  let pendingCost = 0n

  function addPending(attempt: Attempt) {
    removePending(attempt.hash)
    pending.set(attempt.hash, attempt)
    pendingHashes.set(attempt.nonce, (pendingHashes.get(attempt.nonce) ?? new Set()).add(attempt.hash))
    pendingCost += costOf(attempt)
  }
  function removePending(hash: Hex) {
    const attempt = pending.get(hash)
    if (attempt === undefined) return
    pending.delete(hash)
    const hashes = pendingHashes.get(attempt.nonce)
    hashes?.delete(hash)
    if (hashes?.size === 0) pendingHashes.delete(attempt.nonce)
    pendingCost -= costOf(attempt)
  }
  for (const attempt of select(`state = 'pending' ORDER BY nonce, sent_at`)) addPending(attempt)

  return {
    find: (hash: Hex) => select('hash = ?', hash)[0],
    ofIntent: (digest: Hex) => select('digest = ? ORDER BY nonce, sent_at', digest),
    /** Returns the attempts of several intents without their bytes, in one statement. */
    ofIntents: (digests: readonly Hex[]): AttemptSummary[] =>
      sql
        .exec<AttemptRow>(
          `SELECT hash, nonce, digest, purpose, state, sent_at FROM attempt
           WHERE digest IN (SELECT value FROM json_each(?)) ORDER BY nonce, sent_at`,
          JSON.stringify(digests),
        )
        .toArray()
        .map(toSummary),
    atNonce: (nonce: number) => select('nonce = ? ORDER BY sent_at', nonce),
    /** Returns all pending attempts, lowest nonces first. */
    pending: () => [...pending.values()].toSorted((a, b) => a.nonce - b.nonce || a.sentAt - b.sentAt),
    /** Returns an attempt if it is pending. */
    findPending: (hash: Hex) => pending.get(hash),
    isPending: (hash: Hex) => pending.has(hash),
    hasPendingAt: (nonce: number) => pendingHashes.has(nonce),

    highestNonce(): number {
      const { nonce } = sql.exec<{ nonce: number | null }>('SELECT MAX(nonce) AS nonce FROM attempt').one()
      return nonce ?? -1
    },

    /**
     * Returns the attempt that replaced another one: the one mined at its nonce or for its intent, else the newest
     * pending one. Undefined if the attempt itself was mined.
     */
    replacementOf({ hash, nonce, digest, state, sentAt }: Attempt): Attempt | undefined {
      if (state === 'mined' || state === 'reverted') return undefined
      const others = select(
        '(nonce = ? OR digest = ?) AND hash <> ? ORDER BY sent_at DESC, length(max_fee) DESC, max_fee DESC',
        nonce,
        digest,
        hash,
      )
      const included = others.find(other => other.state === 'mined' || other.state === 'reverted')
      return included ?? others.find(other => other.state === 'pending' && other.sentAt >= sentAt)
    },

    /** Returns how many attempts are pending, and when the oldest was sent (milliseconds). */
    pendingTotals(): { count: number; oldest: number | undefined } {
      let oldest: number | undefined
      for (const { sentAt } of pending.values()) if (oldest === undefined || sentAt < oldest) oldest = sentAt
      return { count: pending.size, oldest }
    },

    /** Returns the maximum cost of all pending attempts together, in wei. */
    pendingCost: () => pendingCost,

    /** Returns when the first attempt at the lowest pending nonce was sent (milliseconds). All others wait for that nonce. */
    lowestPendingSince(): number | undefined {
      let lowest: Attempt | undefined
      for (const attempt of pending.values())
        if (
          lowest === undefined ||
          attempt.nonce < lowest.nonce ||
          (attempt.nonce === lowest.nonce && attempt.sentAt < lowest.sentAt)
        )
          lowest = attempt
      return lowest?.sentAt
    },

    /** Returns the reverted transactions of intents that were sent after a time (milliseconds). */
    revertsSince: (since: number): Revert[] =>
      sql
        .exec<Revert>(
          `SELECT party, digest, kind, sent_at AS at FROM attempt CROSS JOIN intent USING (digest)
           WHERE attempt.state = 'reverted' AND sent_at > ? ORDER BY sent_at`,
          since,
        )
        .toArray(),

    /** Inserts pending attempts, in one statement. */
    insert(attempts: readonly Attempt[]) {
      sql.exec(
        `INSERT INTO attempt (hash, nonce, digest, purpose, raw, gas, max_fee, sent_at, state)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, 'pending'
         FROM json_each(?)`,
        JSON.stringify(
          attempts.map(({ hash, nonce, digest, purpose, raw, gas, maxFee, sentAt }) => [
            hash,
            nonce,
            digest,
            purpose,
            raw,
            gas,
            `${maxFee}`,
            sentAt,
          ]),
        ),
      )
      for (const attempt of attempts) addPending(attempt)
    },

    /** Records that attempts were mined, in one statement. Marks the other attempts at their nonces as replaced. */
    include(inclusions: readonly Inclusion[]) {
      for (const { attempt } of inclusions) {
        removePending(attempt.hash)
        const others = pendingHashes.get(attempt.nonce)
        if (others === undefined) continue
        sql.exec(
          `UPDATE attempt SET state = 'replaced' WHERE nonce = ? AND hash <> ? AND state = 'pending'`,
          attempt.nonce,
          attempt.hash,
        )
        for (const hash of others) removePending(hash)
      }
      sql.exec(
        `UPDATE attempt SET state = value ->> 1, block_number = value ->> 2, block_hash = value ->> 3, gas_used = value ->> 4, final = 0
         FROM json_each(?) WHERE hash = value ->> 0`,
        JSON.stringify(
          inclusions.map(({ attempt: { hash }, state, block, gasUsed }) => [
            hash,
            state,
            block.number,
            block.hash,
            gasUsed,
          ]),
        ),
      )
    },

    /** Records that a foreign transaction used the nonce. */
    markNonceUsedElsewhere(nonce: number) {
      sql.exec(`UPDATE attempt SET state = 'replaced' WHERE nonce = ? AND state = 'pending'`, nonce)
      for (const hash of pendingHashes.get(nonce) ?? []) removePending(hash)
    },

    /** Makes every attempt at a nonce pending again after a reorg removed the block. */
    reopen(nonce: number) {
      sql.exec(
        `UPDATE attempt SET state = 'pending', block_number = NULL, block_hash = NULL, final = 0 WHERE nonce = ?`,
        nonce,
      )
      for (const attempt of select('nonce = ?', nonce)) addPending(attempt)
    },

    /** Whether any mined attempt is not final yet. */
    hasWatched: () => exists(IS_WATCHED),

    /** Returns when the oldest attempt that is mined but not final was signed (epoch milliseconds); undefined without one. */
    oldestWatchedSince: (): number | undefined =>
      sql.exec<{ time: number | null }>(`SELECT min(sent_at) AS time FROM attempt WHERE ${IS_WATCHED}`).one().time ??
      undefined,

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

    /** Deletes the attempts of intents that are about to be deleted, and fillers that are over a day old. */
    prune(prunableIntents: string) {
      sql.exec(
        `DELETE FROM attempt WHERE digest IN (SELECT digest FROM intent WHERE ${prunableIntents})`,
        Math.floor(Date.now() / 1000),
      )
      sql.exec(`DELETE FROM attempt WHERE digest IS NULL AND state <> 'pending' AND sent_at < ?`, Date.now() - DAY_MS)
    },
  }
}

const costOf = ({ gas, maxFee }: Attempt) => BigInt(gas) * maxFee

const toSummary = (row: AttemptRow): AttemptSummary => ({
  hash: row.hash as Hex,
  nonce: row.nonce as number,
  digest: row.digest as Hex | null,
  purpose: row.purpose as AttemptPurpose,
  state: row.state as AttemptState,
  sentAt: row.sent_at as number,
})

const toAttempt = (row: AttemptRow): Attempt => ({
  ...toSummary(row),
  raw: row.raw as Hex,
  gas: row.gas as number,
  maxFee: BigInt(row.max_fee as string),
  blockNumber: row.block_number as number | null,
  blockHash: row.block_hash as Hex | null,
  final: row.final === 1,
  gasUsed: row.gas_used as number,
})
