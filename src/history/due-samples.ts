import type { Address } from 'viem'
import type { IndexCursor } from './tables/cursor.ts'
import { readSamplingProgress, type SamplingProgress } from './tables/sampling-progress.ts'

/** Everything that can change without an event is sampled once in each quarter of an hour, by block time. */
const QUARTER_SECONDS = 900

/** Returns the quarter of an hour since the epoch that a time in Unix seconds is in. */
export const quarterOf = (timestamp: number): number => Math.floor(timestamp / QUARTER_SECONDS)

/** The agents and vaults to sample, and the progress to store once all of them have been sampled. */
export type DueSamples = { agents: bigint[]; vaults: Address[]; progress: SamplingProgress }

/**
 * Returns who traded, got another cap, or lost samples in a reorg since the last samples; in a new quarter of an hour also
 * every vault, and every agent with open positions. Before the first samples, returns all.
 */
export async function findDueSamples(
  db: D1Database,
  { block, timestamp }: IndexCursor,
  vaults: readonly Address[],
): Promise<DueSamples> {
  const progress = { changedTo: block, quarter: quarterOf(timestamp) }
  const previous = await readSamplingProgress(db)
  if (previous === undefined)
    return { agents: (await selectColumn<number>(db, ALL_AGENTS)).map(BigInt), vaults: [...vaults], progress }
  const isNewQuarter = previous.quarter !== progress.quarter
  const agents = new Set([
    ...(await selectColumn<number>(db, CHANGED_AGENTS, previous.changedTo, block)),
    ...(isNewQuarter ? await selectColumn<number>(db, AGENTS_WITH_POSITIONS) : []),
  ])
  const changedVaults = isNewQuarter
    ? vaults
    : await selectColumn<Address>(db, CHANGED_VAULTS, previous.changedTo, block)
  return {
    agents: [...agents].map(BigInt),
    vaults: vaults.filter(vault => changedVaults.includes(vault)),
    progress,
  }
}

async function selectColumn<Value>(db: D1Database, sql: string, ...bindings: (string | number)[]): Promise<Value[]> {
  const rows = await db
    .prepare(sql)
    .bind(...bindings)
    .raw<[Value]>()
  return rows.map(([value]) => value)
}

const ALL_AGENTS = 'SELECT agent_id FROM agents WHERE until IS NULL'
const AGENTS_WITH_POSITIONS = 'SELECT agent_id FROM equity WHERE until IS NULL AND open_count > 0'
const CHANGED_AGENTS = `SELECT agent_id FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT agent_id FROM events WHERE block > ?1 AND block <= ?2 AND agent_id IS NOT NULL
  UNION SELECT agent_id FROM unsampled`
const CHANGED_VAULTS = `SELECT vault FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT contract FROM events WHERE block > ?1 AND block <= ?2 AND name IN ('Deposit', 'Withdraw')`
