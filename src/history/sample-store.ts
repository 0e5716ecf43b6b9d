import type { Address } from 'viem'
import type { WorthReading } from '../chain/equity-and-worth.ts'
import { commitAtCursor, type IndexCursor } from './tables/cursor.ts'
import { equityTable, insertEquities } from './tables/equity-samples.ts'
import { readSamplingProgress, type SamplingProgress, setSamplingProgress } from './tables/sampling-progress.ts'
import { insertVaultWorths, vaultWorthTable } from './tables/vault-worth-samples.ts'

/** Everything that can change without an event is sampled once in each quarter of an hour, by block time. */
const QUARTER_SECONDS = 900
const HOUR_SECONDS = 3_600

/** Returns the quarter of an hour since the epoch that a time in Unix seconds is in. */
export const quarterOf = (timestamp: number): number => Math.floor(timestamp / QUARTER_SECONDS)

/** The agents and vaults to sample, and the progress to store once all of them have been sampled. */
export type DueSamples = { agents: bigint[]; vaults: Address[]; progress: SamplingProgress }

export type SampleStore = ReturnType<typeof openSampleStore>

/** Opens the samples of the index for their only writer. */
export function openSampleStore(db: D1Database) {
  async function selectColumn<Value>(sql: string, ...bindings: (string | number)[]): Promise<Value[]> {
    const rows = await db
      .prepare(sql)
      .bind(...bindings)
      .raw<[Value]>()
    return rows.map(([value]) => value)
  }

  return {
    /**
     * Returns who traded or got another cap since the last samples; in a new quarter of an hour also every vault, and every
     * agent with open positions. Before the first samples, returns all.
     */
    async findDue({ block, timestamp }: IndexCursor, vaults: readonly Address[]): Promise<DueSamples> {
      const progress = { changedTo: block, quarter: quarterOf(timestamp) }
      const previous = await readSamplingProgress(db)
      if (previous === undefined)
        return { agents: (await selectColumn<number>(ALL_AGENTS)).map(BigInt), vaults: [...vaults], progress }
      const isNewQuarter = previous.quarter !== progress.quarter
      const agents = new Set([
        ...(await selectColumn<number>(CHANGED_AGENTS, previous.changedTo, block)),
        ...(isNewQuarter ? await selectColumn<number>(AGENTS_WITH_POSITIONS) : []),
      ])
      const changedVaults = isNewQuarter
        ? vaults
        : await selectColumn<Address>(CHANGED_VAULTS, previous.changedTo, block)
      return {
        agents: [...agents].map(BigInt),
        vaults: vaults.filter(vault => changedVaults.includes(vault)),
        progress,
      }
    },

    /** Adds samples of a block that is on the cursor's branch, and deletes the earlier ones of the hour. Throws CursorMoved. */
    async write(cursor: IndexCursor, { block, equities, worths }: WorthReading): Promise<void> {
      const hour = Number(block.timestamp) - (Number(block.timestamp) % HOUR_SECONDS)
      const deleteSuperseded = (table: string, keyColumn: string, keys: Iterable<number | Address>) =>
        db.prepare(supersededIn(table, keyColumn)).bind(JSON.stringify([...keys]), hour, cursor.final)
      await commitAtCursor(db, cursor.hash, [
        ...insertEquities(db, block, equities),
        insertVaultWorths(db, block, worths),
        deleteSuperseded(equityTable.name, 'agent_id', [...equities.keys()].map(Number)),
        deleteSuperseded(vaultWorthTable.name, 'vault', worths.keys()),
      ])
    },

    /** Stores that everything due has been sampled. Throws CursorMoved. */
    finish: (cursor: IndexCursor, progress: SamplingProgress): Promise<void> =>
      commitAtCursor(db, cursor.hash, [setSamplingProgress(db, progress)]),
  }
}

const ALL_AGENTS = 'SELECT agent_id FROM agents WHERE until IS NULL'
const AGENTS_WITH_POSITIONS = 'SELECT agent_id FROM equity WHERE until IS NULL AND open_count > 0'
const CHANGED_AGENTS = `SELECT agent_id FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT agent_id FROM events WHERE block > ?1 AND block <= ?2 AND agent_id IS NOT NULL`
const CHANGED_VAULTS = `SELECT vault FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT contract FROM events WHERE block > ?1 AND block <= ?2 AND name IN ('Deposit', 'Withdraw')`

/**
 * Deletes, in the hour from ?2, the samples that are older than the newest final one. The non-final ones stay, because a
 * reorg could make any of them the last sample of the hour.
 */
const supersededIn = (table: string, keyColumn: string) =>
  `DELETE FROM ${table} WHERE ${keyColumn} IN (SELECT value FROM json_each(?1)) AND timestamp >= ?2 AND block < (
    SELECT max(block) FROM ${table} AS later
    WHERE later.${keyColumn} = ${table}.${keyColumn} AND later.timestamp >= ?2 AND later.block <= ?3)`
