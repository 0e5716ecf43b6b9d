import { refuse } from '../errors/refuse.ts'
import { migrations } from '../generated/migrations.ts'

/** The names of the migrations, in order. */
export type MigrationState = { applied: string[]; pending: string[] }

/** Reads which migrations a database has: none if it lacks the table of migrations. Throws HISTORY_UNAVAILABLE. */
export async function readMigrationState(db: D1Database): Promise<MigrationState> {
  const { results } = await db
    .prepare('SELECT name FROM d1_migrations')
    .all<{ name: string }>()
    .catch(error => {
      if (error instanceof Error && /no such table/.test(error.message)) return { results: [] }
      throw refuse('HISTORY_UNAVAILABLE', {}, { cause: error })
    })
  const names = new Set(results.map(({ name }) => name))
  return {
    applied: migrations.filter(({ name }) => names.has(name)).map(({ name }) => name),
    pending: migrations.filter(({ name }) => !names.has(name)).map(({ name }) => name),
  }
}
