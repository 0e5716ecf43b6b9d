import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../migrations')

/**
 * The file with the hash of every migration that a release has. Databases have applied these, so they must not change.
 */
export const RELEASED = join(folder, 'released.json')

/** Hashes of migrations by file name. */
type MigrationHashes = Record<string, string>

/** Returns the SQL of the migrations by file name, in order. */
export const readMigrations = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder)
      .filter(name => name.endsWith('.sql'))
      .sort()
      .map(name => [name, readFileSync(join(folder, name), 'utf8')]),
  )

export const readReleased = (): MigrationHashes => JSON.parse(readFileSync(RELEASED, 'utf8'))

/** Returns what a release records about its migrations. */
export const hashesOf = (migrations: Record<string, string>): MigrationHashes =>
  Object.fromEntries(
    Object.entries(migrations).map(([name, sql]) => [name, createHash('sha256').update(sql).digest('hex')]),
  )

/**
 * Returns what is wrong with migrations, one sentence each: a released one that is edited or gone, a new one before it.
 */
export function findEditedMigrations(released: MigrationHashes, migrations: Record<string, string>): string[] {
  const present = hashesOf(migrations)
  const newest = Object.keys(released).sort().at(-1) ?? ''
  const edited = Object.entries(released).flatMap(([name, hash]) => {
    if (present[name] === hash) return []
    const what = present[name] === undefined ? 'is gone' : 'was edited'
    return [`${name} ${what}, but a release has it: restore it, and add a migration with the next number.`]
  })
  const early = Object.keys(present)
    .filter(name => !(name in released) && name < newest)
    .map(name => `${name} comes before ${newest}, which a release has: give it the next number.`)
  return [...edited, ...early]
}
