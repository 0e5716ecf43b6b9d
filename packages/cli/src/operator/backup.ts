import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Failure } from '../failure.ts'
import { VERSION } from '../version.ts'
import { assertNodeVersion } from './connect.ts'

/** What a backup says about itself, in its file `backup.json`, which is written last. */
export type Backup = { version: string; createdAt: string; databases: number; lanes: number }

const MANIFEST = 'backup.json'
/** The pages of a database that is as large as SQLite allows. */
const ALL_PAGES = 2 ** 31 - 1
const LANE = 'ExecutorLane'
/**
 * The order in which databases are copied while they change: what follows others before what it follows, so that in a
 * backup nothing is ahead of its source, and lanes last, because the chain goes on without them. The rest comes first.
 */
const ORDER = ['Webhooks', 'EventStreamShard', 'EventStreams', 'HistoryIndexer', 'D1DatabaseObject', LANE]

/**
 * Copies every database of a service's storage folder, each as it is at one moment, while the service may be running.
 * The folder `to` must not exist; it appears when the copy is complete. Throws `STORAGE_MISSING` or `FOLDER_IN_USE`.
 */
export async function backUp(storage: string, to: string): Promise<Backup & { to: string }> {
  assertNodeVersion()
  const files = databasesIn(storage)
  if (files.length === 0)
    throw new Failure('refused', `There is no database in ${storage}.`, {
      code: 'STORAGE_MISSING',
      remedy: 'Pass --storage with the folder of the service: --data of `agent-trading-service`.',
    })
  assertAbsent(to, 'Pass a folder that does not exist yet.')
  const partial = `${resolve(to)}.partial`
  rmSync(partial, { recursive: true, force: true })
  const sqlite = await import('node:sqlite')
  for (const file of files) {
    const copy = join(partial, file)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
    const source = new sqlite.DatabaseSync(join(storage, file), { readOnly: true })
    try {
      await sqlite.backup(source, copy, { rate: ALL_PAGES }) // in one step, which no write interrupts
    } finally {
      source.close()
    }
  }
  const backup: Backup = {
    version: VERSION,
    createdAt: new Date().toISOString(),
    databases: files.length,
    lanes: files.filter(isLane).length,
  }
  writeFileSync(join(partial, MANIFEST), `${JSON.stringify(backup, undefined, 2)}\n`)
  renameSync(partial, to)
  return { ...backup, to }
}

/**
 * Writes a backup into a storage folder that does not exist or is empty. Each lane learns that it was restored: it then
 * goes on from the account's nonce on the chain. Throws `BACKUP_INVALID` or `FOLDER_IN_USE`.
 */
export async function restore(from: string, storage: string): Promise<Backup & { storage: string }> {
  assertNodeVersion()
  const backup = readManifest(from)
  const files = databasesIn(from)
  if (files.length !== backup.databases) throw invalid(`${from} has ${files.length} of ${backup.databases} databases.`)
  assertAbsent(storage, 'Stop the service, and move its folder away first.')
  const sqlite = await import('node:sqlite')
  mkdirSync(storage, { recursive: true, mode: 0o700 })
  for (const file of files) {
    const path = join(storage, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    cpSync(join(from, file), path)
    const database = new sqlite.DatabaseSync(path)
    try {
      const [check] = database.prepare('PRAGMA quick_check(1)').all()
      if (check?.quick_check !== 'ok') throw invalid(`${file} of ${from} is damaged.`)
      if (isLane(file))
        database.exec("INSERT INTO lane VALUES ('restored', '') ON CONFLICT (name) DO UPDATE SET value = ''")
    } finally {
      database.close()
    }
  }
  return { ...backup, storage }
}

/** Returns the databases below a folder, in the order of a backup. */
function databasesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.sqlite'))
  const rank = (file: string) => ORDER.findIndex(name => file.includes(name))
  return found.sort((one, other) => rank(one) - rank(other))
}

const isLane = (file: string): boolean => file.includes(LANE) && !file.includes('metadata')

function assertAbsent(folder: string, remedy: string): void {
  if (!existsSync(folder) || readdirSync(folder).length === 0) return
  throw new Failure('refused', `${folder} exists already and is not empty.`, { code: 'FOLDER_IN_USE', remedy })
}

function readManifest(from: string): Backup {
  try {
    return JSON.parse(readFileSync(join(from, MANIFEST), 'utf8'))
  } catch {
    throw invalid(`${from} has no ${MANIFEST}.`)
  }
}

const invalid = (sentence: string) =>
  new Failure('refused', sentence, {
    code: 'BACKUP_INVALID',
    remedy: 'Pass a folder that `ats admin backup` has written completely.',
  })
