import type { Hex } from 'viem'
import type { GasLevels } from './gas-budgets.ts'
import type { Revert } from './revert-counter.ts'

/**
 * `call`: carries the intent. `cancel`: a zero-value transfer that fills the nonce so the call can no longer be mined.
 */
export type AttemptPurpose = 'call' | 'cancel'

/** Of the attempts at one nonce at most one is mined. The others are `replaced`. */
export type AttemptState = 'pending' | 'mined' | 'reverted' | 'replaced'

/**
 * A row of the journal's attempt table: signed bytes at an account nonce. Several attempts may share a nonce; at most
 * one of them is mined. A `cancel` without a digest fills a nonce that belongs to no intent. `sentAt` is in
 * milliseconds.
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

type AttemptRow = AttemptSummary &
  Pick<Attempt, 'raw' | 'gas' | 'blockNumber' | 'blockHash' | 'gasUsed'> & { maxFee: string }

const SUMMARY_COLUMNS = 'hash, nonce, attempt.digest, purpose, attempt.state, sent_at AS sentAt'
const COLUMNS = `${SUMMARY_COLUMNS}, raw, gas, max_fee AS maxFee, block_number AS blockNumber, block_hash AS blockHash,
  gas_used AS gasUsed`

/** Selects attempts that are mined and not final; ? is the nonce up to which everything is final. */
const IS_WATCHED = `nonce > ? AND state IN ('mined', 'reverted')`

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
export function attemptTable(sql: SqlStorage, finalNonce: () => number) {
  const select = (query: string, ...bindings: SqlStorageValue[]): Attempt[] =>
    sql
      .exec<AttemptRow>(`SELECT ${COLUMNS} FROM attempt WHERE ${query}`, ...bindings)
      .toArray()
      .map(row => ({ ...row, maxFee: BigInt(row.maxFee), final: row.nonce <= finalNonce() }))

  /** Returns a number that a statement selects, such as a minimum; undefined for a null. */
  const selectNumber = (query: string, ...bindings: SqlStorageValue[]): number | undefined =>
    sql.exec<{ number: number | null }>(`SELECT ${query}`, ...bindings).one().number ?? undefined

  const ofIntent = (digest: Hex) =>
    select(
      'digest = ?1 AND nonce IN (SELECT value FROM intent, json_each(intent.nonces) WHERE digest = ?1) ORDER BY nonce, sent_at',
      digest,
    )

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
  for (const attempt of select(`nonce > ? AND state = 'pending' ORDER BY nonce, sent_at`, finalNonce()))
    addPending(attempt)

  const highestNonce = (): number => selectNumber('max(nonce) AS number FROM attempt') ?? -1

  return {
    find: (hash: Hex) => select('hash = ?', hash)[0],
    ofIntent,
    /** Returns the attempts of several intents without their bytes, in one statement. */
    ofIntents: (digests: readonly Hex[]): AttemptSummary[] =>
      sql
        .exec<AttemptSummary>(
          `SELECT ${SUMMARY_COLUMNS} FROM json_each(?) AS given CROSS JOIN intent ON intent.digest = given.value
           CROSS JOIN json_each(intent.nonces) AS signed
           CROSS JOIN attempt ON attempt.nonce = signed.value AND attempt.digest = intent.digest
           ORDER BY nonce, sent_at`,
          JSON.stringify(digests),
        )
        .toArray(),
    atNonce: (nonce: number) => select('nonce = ? ORDER BY sent_at', nonce),
    /** Returns all pending attempts, lowest nonces first. */
    pending: () => [...pending.values()].toSorted(compareAttempts),
    /** Returns an attempt if it is pending. */
    findPending: (hash: Hex) => pending.get(hash),
    isPending: (hash: Hex) => pending.has(hash),
    hasPendingAt: (nonce: number) => pendingHashes.has(nonce),

    highestNonce,

    /**
     * Returns the attempt that replaced another one: the one mined at its nonce or for its intent, else the newest
     * pending one. Undefined if the attempt itself was mined.
     */
    replacementOf({ hash, nonce, digest, state, sentAt }: Attempt): Attempt | undefined {
      if (state === 'mined' || state === 'reverted') return undefined
      const others = [...select('nonce = ?', nonce), ...(digest === null ? [] : ofIntent(digest))]
        .filter(other => other.hash !== hash)
        .toSorted((a, b) => b.sentAt - a.sentAt || Number(b.maxFee - a.maxFee))
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

    /**
     * Returns when the first attempt at the lowest pending nonce was sent (milliseconds). All others wait for that
     * nonce.
     */
    lowestPendingSince(): number | undefined {
      let lowest: Attempt | undefined
      for (const attempt of pending.values())
        if (lowest === undefined || compareAttempts(attempt, lowest) < 0) lowest = attempt
      return lowest?.sentAt
    },

    /**
     * Returns the last nonce before everything that is pending, or mined above a block, or whose intent is to be signed
     * again.
     */
    lastNonceBefore(blockNumber: number): number {
      const nonce = selectNumber(
        `min(nonce) AS number FROM attempt WHERE nonce > ?1 AND (state = 'pending'
             OR state IN ('mined', 'reverted') AND block_number > ?2
             OR state = 'replaced' AND EXISTS (SELECT 1 FROM intent WHERE intent.digest = attempt.digest
               AND intent.state IN ('prepared', 'sent') AND NOT EXISTS (SELECT 1 FROM json_each(intent.nonces) AS signed
                 CROSS JOIN attempt AS other ON other.nonce = signed.value AND other.digest = intent.digest
                 WHERE other.state IN ('pending', 'mined'))))`,
        finalNonce(),
        blockNumber,
      )
      return nonce === undefined ? highestNonce() : nonce - 1
    },

    /** Returns the intents with attempts at a range of nonces. */
    digestsAt: (from: number, to: number): Hex[] =>
      sql
        .exec<{ digest: Hex }>(
          'SELECT DISTINCT digest FROM attempt WHERE nonce BETWEEN ? AND ? AND digest IS NOT NULL',
          from,
          to,
        )
        .toArray()
        .map(({ digest }) => digest),

    /**
     * Returns the gas levels that inclusions charged, of attempts that were sent after a time (milliseconds), newest
     * first.
     */
    *levelsSince(since: number): Iterable<GasLevels> {
      const rows = sql.exec<{ sent_at: number; levels: string | null }>(
        'SELECT sent_at, levels FROM attempt ORDER BY nonce DESC',
      )
      for (const { sent_at, levels } of rows) {
        if (sent_at <= since) return
        if (levels !== null) yield JSON.parse(levels) as GasLevels
      }
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

    /**
     * Records that attempts were mined, in one statement, with the gas levels that this charged. Marks the other
     * attempts at their nonces as replaced.
     */
    include(inclusions: readonly Inclusion[], levels: GasLevels = {}) {
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
        `UPDATE attempt SET state = value ->> 2, block_number = value ->> 3, block_hash = value ->> 4, gas_used = value ->> 5,
           levels = json_patch(coalesce(levels, '{}'), value ->> 6), included_at = ?2
         FROM json_each(?1) WHERE nonce = value ->> 0 AND hash = value ->> 1`,
        JSON.stringify(
          inclusions.map(({ attempt: { nonce, hash }, state, block, gasUsed }, index) => [
            nonce,
            hash,
            state,
            block.number,
            block.hash,
            gasUsed,
            index === 0 ? levels : {}, // they are of all together
          ]),
        ),
        Date.now(),
      )
    },

    /** Records that a foreign transaction used the nonce. */
    markNonceUsedElsewhere(nonce: number) {
      sql.exec(`UPDATE attempt SET state = 'replaced' WHERE nonce = ? AND state = 'pending'`, nonce)
      for (const hash of pendingHashes.get(nonce) ?? []) removePending(hash)
    },

    /** Makes every attempt at a nonce pending again after a reorg removed the block. */
    reopen(nonce: number) {
      sql.exec(`UPDATE attempt SET state = 'pending', block_number = NULL, block_hash = NULL WHERE nonce = ?`, nonce)
      for (const attempt of select('nonce = ?', nonce)) addPending(attempt)
    },

    /** Whether any mined attempt is not final yet. */
    hasWatched: (): boolean =>
      sql.exec(`SELECT 1 FROM attempt WHERE ${IS_WATCHED} LIMIT 1`, finalNonce()).toArray().length > 0,

    /** Returns the highest block with an attempt that is not final; -1 without one. */
    newestWatchedBlock: (): number =>
      selectNumber(`max(block_number) AS number FROM attempt WHERE ${IS_WATCHED}`, finalNonce()) ?? -1,

    /** Returns the highest block with an attempt that is not final and was signed before a time; -1 without one. */
    newestBlockBefore: (time: number): number =>
      selectNumber(
        `max(block_number) AS number FROM attempt WHERE ${IS_WATCHED} AND sent_at < ?`,
        finalNonce(),
        time,
      ) ?? -1,

    /**
     * Returns when the oldest attempt that is mined but not final was signed (epoch milliseconds); undefined without
     * one.
     */
    oldestWatchedSince: (): number | undefined =>
      selectNumber(`min(sent_at) AS number FROM attempt WHERE ${IS_WATCHED}`, finalNonce()),

    /** Returns the numbers of blocks with attempts that are not final, lowest first. */
    watchedBlocks: (from: number, limit: number): number[] =>
      sql
        .exec<{ number: number }>(
          `SELECT DISTINCT block_number AS number FROM attempt
           WHERE ${IS_WATCHED} AND block_number >= ? ORDER BY block_number LIMIT ?`,
          finalNonce(),
          from,
          limit,
        )
        .toArray()
        .map(row => row.number),

    watchedIn: (blockNumber: number) =>
      select(`${IS_WATCHED} AND block_number = ? ORDER BY nonce`, finalNonce(), blockNumber),

    watchedAbove: (blockNumber: number) =>
      select(`${IS_WATCHED} AND block_number > ? ORDER BY nonce`, finalNonce(), blockNumber),

    /** Deletes the attempts of deleted intents, and fillers that are over a day old. */
    prune(intents: readonly { digest: Hex; nonces: string }[]) {
      if (intents.length > 0)
        sql.exec(
          `DELETE FROM attempt WHERE nonce IN (SELECT value FROM json_each(?))
             AND digest IN (SELECT value FROM json_each(?))`,
          JSON.stringify(intents.flatMap(({ nonces }) => JSON.parse(nonces) as number[])),
          JSON.stringify(intents.map(({ digest }) => digest)),
        )
      sql.exec(`DELETE FROM attempt WHERE digest IS NULL AND state <> 'pending' AND sent_at < ?`, Date.now() - DAY_MS)
    },
  }
}

const costOf = ({ gas, maxFee }: Attempt) => BigInt(gas) * maxFee

/** Compares by nonce, then by time. */
const compareAttempts = (a: Attempt, b: Attempt): number => a.nonce - b.nonce || a.sentAt - b.sentAt
