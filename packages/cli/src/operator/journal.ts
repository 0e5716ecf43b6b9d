import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
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
const MAX_DATE_SECONDS = 8_640_000_000_000

/** Lists the lanes in a storage folder. Throws `LANES_MISSING`. */
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
  if (lanes.length === 0) throw missing(`No lane has a journal in ${storage}`, 'LANES_MISSING', storage)
  return { lanes }
}

/** Reads an intent from the journals of all lanes in a storage folder. Throws `INTENT_UNKNOWN`. */
export async function readJournals(storage: string, digest: string): Promise<{ lanes: LaneJournal[] }> {
  const lanes = await fromJournals(storage, journal => {
    const rows = (table: string) =>
      (journal.prepare(`SELECT * FROM ${table} WHERE digest = ?`).all(digest) as Row[]).map(readable)
    const [lane] = journal.prepare("SELECT value FROM lane WHERE name = 'address'").all() as Row[]
    return rows('intent').map(intent => ({ lane: `${lane?.value}`, intent, attempts: rows('attempt') }))
  })
  if (lanes.length > 0) return { lanes }
  throw missing(`No lane in ${storage} has an intent with the digest ${digest}`, 'INTENT_UNKNOWN', storage)
}

/** Returns the failure of a search, with the folders that were searched. */
const missing = (sentence: string, code: string, storage: string) =>
  new Failure('refused', `${sentence}: looked into ${objectFolders(storage).join(' and ')}.`, {
    code,
    remedy: 'Pass --storage with the folder of the service: --data of `npm run serve`, --persist-to of `wrangler dev`.',
  })

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

/** Returns where the storage of Durable Objects may be: `wrangler dev` has a folder more than `npm run serve`. */
const objectFolders = (storage: string) => [resolve(storage, 'v3/do'), resolve(storage, 'do')]

/** Returns the files of all lanes. */
function journalFiles(storage: string): string[] {
  const objects = objectFolders(storage).find(existsSync)
  if (objects === undefined) return []
  const classes = readdirSync(objects).filter(name => name.includes('ExecutorLane'))
  return classes.flatMap(name =>
    readdirSync(join(objects, name))
      .filter(file => file.endsWith('.sqlite') && !file.includes('metadata'))
      .map(file => join(objects, name, file)),
  )
}

/** Returns a row as people read it: long values are cut, and times are in UTC. */
const readable = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, readableValue(name, value)]))

function readableValue(name: string, value: Row[string]): Row[string] {
  if (typeof value === 'string') return value.slice(0, MAX_VALUE)
  if (typeof value !== 'number') return value
  if (name.endsWith('_at')) return new Date(value).toISOString()
  // A body may be valid for longer than dates reach.
  return name === 'deadline' && value < MAX_DATE_SECONDS ? new Date(value * 1_000).toISOString() : value
}
