import type { Address } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import type { WorthReading } from '../chain/equity-and-worth.ts'
import { commitAtCursor } from './commit-at-cursor.ts'
import { continueTrackRecords } from './compute-track-records.ts'
import { deleteOldStandings } from './delete-old-standings.ts'
import { readDueAgents, type SamplingPass, startPass } from './due-samples.ts'
import type { IndexCursor } from './tables/cursor.ts'
import { equityTable, insertEquities } from './tables/equity-samples.ts'
import { setSamplingProgress } from './tables/sampling-progress.ts'
import { insertVaultWorths, vaultWorthTable } from './tables/vault-worth-samples.ts'
import { thinOldPrices } from './thin-old-prices.ts'
import { thinOldSamples } from './thin-old-samples.ts'

const HOUR_SECONDS = 3_600

export type SampleStore = ReturnType<typeof openSampleStore>

/** Opens the samples of the index for their only writer. */
export function openSampleStore(db: D1Database, chain: Chain) {
  return {
    /** Starts a pass of samples: see due-samples.ts. */
    startPass: (cursor: IndexCursor, vaults: readonly Address[]): Promise<SamplingPass> =>
      startPass(db, cursor, vaults),

    /** Reads a page of the agents that a pass samples. */
    readDueAgents: (pass: SamplingPass, page: { after: bigint; limit: number }): Promise<bigint[]> =>
      readDueAgents(db, pass, page),

    /**
     * Adds samples of a block that is on the cursor's branch, deletes the earlier ones of the hour, and extends the
     * track records of the sampled agents. Throws CursorMoved.
     */
    async write(cursor: IndexCursor, { block, equities, worths }: WorthReading): Promise<void> {
      const hour = Number(block.timestamp) - (Number(block.timestamp) % HOUR_SECONDS)
      const deleteSuperseded = (table: string, keyColumn: string, keys: Iterable<number | Address>) =>
        db.prepare(supersededIn(table, keyColumn)).bind(JSON.stringify([...keys]), hour, cursor.final)
      const agentIds = [...equities.keys()].map(Number)
      const trackRecords = await continueTrackRecords(db, chain, agentIds, cursor)
      await commitAtCursor(db, cursor.hash, [
        ...insertEquities(db, block, equities),
        insertVaultWorths(db, block, worths),
        deleteSuperseded(equityTable.name, 'agent_id', agentIds),
        deleteSuperseded(vaultWorthTable.name, 'vault', worths.keys()),
        ...trackRecords,
      ])
    },

    /** Stores the progress of a complete pass. The agents that it skipped are due in the next one. Throws CursorMoved. */
    finish: (cursor: IndexCursor, { progress }: SamplingPass, skipped: readonly bigint[]): Promise<void> =>
      commitAtCursor(db, cursor.hash, [
        setSamplingProgress(db, progress),
        db.prepare('DELETE FROM unsampled'),
        db.prepare('INSERT INTO unsampled SELECT value FROM json_each(?1)').bind(JSON.stringify(skipped.map(Number))),
      ]),

    /** Deletes a page of each kind of expired rows. Throws CursorMoved. */
    async prune(cursor: IndexCursor): Promise<void> {
      const pruned = await Promise.allSettled(
        [thinOldSamples, thinOldPrices, deleteOldStandings].map(async statementsOf =>
          commitAtCursor(db, cursor.hash, await statementsOf(db, cursor)),
        ),
      )
      for (const result of pruned) if (result.status === 'rejected') throw result.reason
    },
  }
}

/**
 * Deletes, in the hour from ?2, the samples that are older than the newest final one. The non-final ones stay, because a
 * reorg could make any of them the last sample of the hour.
 */
const supersededIn = (table: string, keyColumn: string) =>
  `DELETE FROM ${table} WHERE ${keyColumn} IN (SELECT value FROM json_each(?1)) AND timestamp >= ?2 AND block < (
    SELECT max(block) FROM ${table} AS later
    WHERE later.${keyColumn} = ${table}.${keyColumn} AND later.timestamp >= ?2 AND later.block <= ?3)`
