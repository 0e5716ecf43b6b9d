import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../failure.ts'
import { assertNodeVersion } from './connect.ts'

type Row = Record<string, string | number | null>
/** What a lane knows about an intent. */
export type LaneJournal = { lane: string; intent: Row; attempts: Row[] }

/** A lane's object in a storage folder. `nextNonce` is that of its account, as far as it has signed. */
export type StoredLane = { lane: string; file: string; intents: number; nextNonce: number }

/** Cut to this length: call data and signed bytes are long. */
const MAX_VALUE = 100

/** Lists the lanes in a storage folder. */
export async function readLanes(storage: string): Promise<{ lanes: StoredLane[] }> {
  const lanes = await fromJournals(storage, (journal, file) => {
    const [row] = journal
      .prepare(
        `SELECT (SELECT value FROM lane WHERE name = 'address') AS lane, (SELECT count(*) FROM intent) AS intents,
        (SELECT coalesce(max(nonce) + 1, 0) FROM attempt) AS nextNonce`,
      )
      .all() as StoredLane[]
    return row?.lane ? [{ ...row, file }] : []
  })
  return { lanes }
}

/** Reads an intent from the journals of all lanes in a storage folder. Throws `INTENT_UNKNOWN`. */
export async function readJournals(storage: string, digest: string): Promise<{ lanes: LaneJournal[] }> {
  const lanes = await fromJournals(storage, journal => {
    const rows = (table: string) =>
      (journal.prepare(`SELECT * FROM ${table} WHERE digest = ?`).all(digest) as Row[]).map(shortened)
    const [lane] = journal.prepare("SELECT value FROM lane WHERE name = 'address'").all() as Row[]
    return rows('intent').map(intent => ({ lane: `${lane?.value}`, intent, attempts: rows('attempt') }))
  })
  if (lanes.length > 0) return { lanes }
  throw new Failure('refused', `No lane in ${storage} has an intent with the digest ${digest}.`, {
    code: 'INTENT_UNKNOWN',
    remedy: 'Pass --storage with the folder of the service: --data of `npm run serve`, --persist-to of `wrangler dev`.',
  })
}

/** Reads from the journal of each lane in a storage folder. */
async function fromJournals<Result>(
  storage: string,
  read: (journal: DatabaseSync, file: string) => Result[],
): Promise<Result[]> {
  assertNodeVersion()
  // Node warns that the module is new, each time it is loaded.
  const sqlite = await import('node:sqlite')
  return journalFiles(storage).flatMap(file => {
    const journal = new sqlite.DatabaseSync(file, { readOnly: true })
    try {
      return read(journal, file)
    } finally {
      journal.close()
    }
  })
}

/** Returns the files of all lanes: `wrangler dev` has a folder more than `npm run serve`. */
function journalFiles(storage: string): string[] {
  const objects = [join(storage, 'v3/do'), join(storage, 'do')].find(existsSync)
  if (objects === undefined) return []
  const classes = readdirSync(objects).filter(name => name.includes('ExecutorLane'))
  return classes.flatMap(name =>
    readdirSync(join(objects, name))
      .filter(file => file.endsWith('.sqlite') && !file.includes('metadata'))
      .map(file => join(objects, name, file)),
  )
}

const shortened = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, MAX_VALUE) : value]),
  )
