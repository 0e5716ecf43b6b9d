import type { Hex } from 'viem'
import { type Attempt, attemptTable } from './attempt-table.ts'
import { gasLevelTable } from './gas-level-table.ts'
import { type AdmittedRequest, intentTable } from './intent-table.ts'
import { migrateJournal } from './journal-schema.ts'

export type Journal = ReturnType<typeof openJournal>

/**
 * Facts about the lane itself. `foreign` lists when others used its key, in milliseconds, as a JSON array;
 * `price refresh` is when prices were last refreshed, in milliseconds; `nonce` is the account's next nonce, for when no
 * attempt shows it.
 */
type LaneFact = 'address' | 'genesis' | 'foreign' | 'price refresh' | 'nonce'

/**
 * Opens the lane's journal. Every function is synchronous: writes of one turn of the event loop are durable before any
 * byte leaves the object. `onChange` is called with the digest of every intent whose state changes.
 */
export function openJournal(sql: SqlStorage, onChange: (digest: Hex) => void) {
  migrateJournal(sql)
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
           (SELECT digest FROM attempt WHERE final = 0 AND state IN ('mined', 'reverted') AND purpose = 'call' AND block_number <= ?)
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
      intents.prune()
      attempts.prune()
      gasLevels.prune()
    },

    isEmpty(): boolean {
      const { rows } = sql
        .exec<{ rows: number }>('SELECT EXISTS (SELECT 1 FROM intent) OR EXISTS (SELECT 1 FROM attempt) AS rows')
        .one()
      return rows === 0
    },

    /** Deletes all intents and attempts: they belong to a chain that no longer exists. */
    clear() {
      sql.exec('DELETE FROM intent')
      attempts.clear()
      facts.delete('nonce')
      sql.exec(`DELETE FROM lane WHERE name = 'nonce'`)
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
