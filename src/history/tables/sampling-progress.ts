import type { RevertibleTable } from './table.ts'

/**
 * How far sampling has come: every change up to a block, and everything in a quarter of an hour (numbered since the
 * epoch).
 */
export type SamplingProgress = { changedTo: number; quarter: number }

/** One row: the progress of sampling. */
export const samplingTable: RevertibleTable = {
  name: 'sampling',
  rollback: (db, block) => [db.prepare('UPDATE sampling SET changed_to = min(changed_to, ?1)').bind(block)],
}

/**
 * Agents whose samples or track records a reorg deletes. It comes before these tables, because it reads what the reorg deletes
 * there. A record is of the cursor, which may be above the sample's block.
 */
export const unsampledTable: RevertibleTable = {
  name: 'unsampled',
  rollback: (db, block) => [
    ...['equity', 'track_records'].map(table =>
      db.prepare(`INSERT OR IGNORE INTO unsampled SELECT agent_id FROM ${table} WHERE block > ?1`).bind(block),
    ),
  ],
}

/** Reads the progress; undefined before the first samples. */
export async function readSamplingProgress(db: D1Database): Promise<SamplingProgress | undefined> {
  const row = await db
    .prepare('SELECT changed_to AS changedTo, quarter FROM sampling')
    .first<{ changedTo: number; quarter: number }>()
  return row ?? undefined
}

/** Returns a statement that stores the progress. */
export const setSamplingProgress = (db: D1Database, { changedTo, quarter }: SamplingProgress): D1PreparedStatement =>
  db
    .prepare(
      `INSERT INTO sampling (id, changed_to, quarter) VALUES (1, ?1, ?2)
      ON CONFLICT (id) DO UPDATE SET changed_to = ?1, quarter = ?2`,
    )
    .bind(changedTo, quarter)
