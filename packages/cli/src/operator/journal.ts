import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import { assertNodeVersion } from './connect.ts'

type Row = Record<string, string | number | null>
/** What a lane knows about an intent. */
export type LaneJournal = { lane: string; intent: Row; attempts: Row[] }

/** Cut to this length: call data and signed bytes are long. */
const MAX_VALUE = 100

/** Reads an intent from the journals of all lanes in a storage folder. Throws `INTENT_UNKNOWN`. */
export async function readJournals(storage: string, digest: string): Promise<{ lanes: LaneJournal[] }> {
  assertNodeVersion()
  // Node warns that the module is new, each time it is loaded.
  const { DatabaseSync } = await import('node:sqlite')
  const found: LaneJournal[] = []
  for (const file of journalFiles(storage)) {
    const journal = new DatabaseSync(file, { readOnly: true })
    const rows = (table: string) =>
      (journal.prepare(`SELECT * FROM ${table} WHERE digest = ?`).all(digest) as Row[]).map(shortened)
    const [lane] = journal.prepare("SELECT value FROM lane WHERE name = 'address'").all() as Row[]
    for (const intent of rows('intent')) found.push({ lane: `${lane?.value}`, intent, attempts: rows('attempt') })
    journal.close()
  }
  if (found.length > 0) return { lanes: found }
  throw new Failure('refused', `No lane in ${storage} has an intent with the digest ${digest}.`, {
    code: 'INTENT_UNKNOWN',
    remedy: 'Pass --storage with the folder of the service, such as that of `wrangler dev --persist-to`.',
  })
}

function journalFiles(storage: string): string[] {
  const objects = join(storage, 'v3/do')
  const classes = existsSync(objects) ? readdirSync(objects).filter(name => name.includes('ExecutorLane')) : []
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
