import { globSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { WORKER_STORAGE } from '../devnet/worker.ts'

// `npm run journal -- <digest>`: prints what the lanes of a running `npm run dev` have journalled about an intent.
const [digest] = process.argv.slice(2)
if (digest === undefined || !/^0x[0-9a-fA-F]{64}$/.test(digest)) {
  console.error('Usage: npm run journal -- 0x<digest of 64 hex characters>')
  process.exit(1)
}
const files = globSync(join(WORKER_STORAGE, 'v3/do/*ExecutorLane/*.sqlite')).filter(file => !file.includes('metadata'))
if (files.length === 0) console.error('No journal found: start `npm run dev` and relay an intent first.')

/** Prints a row's columns; call data and signed bytes are cut to their first characters. */
function print(name: string, row: Record<string, unknown>) {
  console.log(name)
  for (const [column, value] of Object.entries(row)) console.log(`  ${column.padEnd(12)} ${`${value}`.slice(0, 100)}`)
}

let found = false
for (const file of files) {
  const journal = new DatabaseSync(file, { readOnly: true })
  const rows = (table: string) => journal.prepare(`SELECT * FROM ${table} WHERE digest = ?`).all(digest.toLowerCase())
  const intents = rows('intent')
  if (intents.length > 0) {
    found = true
    const [lane] = journal.prepare("SELECT value FROM lane WHERE name = 'address'").all()
    console.log(`lane ${lane?.value}`)
    for (const intent of intents) print('intent', intent)
    for (const attempt of rows('attempt')) print('attempt', attempt)
  }
  journal.close()
}
if (!found) {
  console.error(`No lane has an intent with the digest ${digest}.`)
  process.exitCode = 1
}
