import type { Hex } from 'viem'
import { logUnexpected } from './background-errors.ts'

/** What a signer said about a trade, under the transaction that executes it. */
export type Note = { hash: Hex; note: string }

/** Existing notes stay: a transaction is of one intent, and an intent keeps its first note. */
const INSERT = `INSERT INTO notes (transaction_hash, note) SELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE true
  ON CONFLICT DO NOTHING`

/** How long a transaction waits for its note: a trade matters more than what was said about it. */
const MAX_WRITE_MS = 500

/**
 * Returns a function that stores notes in the history database, and resolves once they are there, or could not be written in
 * time. No row of the index has them, because the index is made from the chain alone. A lane stores a note before it sends the
 * transaction, so that it is there before the trade is, and again when the transaction is mined and when the lane starts, in case
 * an earlier write failed.
 */
export const createNoteStore =
  (db: D1Database) =>
  async (notes: readonly { hash: Hex; note: string | null | undefined }[]): Promise<void> => {
    const given = notes.filter((each): each is Note => each.note !== null && each.note !== undefined)
    if (given.length === 0) return
    const write = db
      .prepare(INSERT)
      .bind(JSON.stringify(given.map(({ hash, note }) => [hash, note])))
      .run()
      .catch(logUnexpected)
    await Promise.race([write, scheduler.wait(MAX_WRITE_MS)])
  }
