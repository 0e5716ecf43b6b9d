import type { Address } from 'viem'
import type { IndexCursor } from './tables/cursor.ts'
import { readSamplingProgress, type SamplingProgress } from './tables/sampling-progress.ts'

/** State that can change without an event is sampled once per quarter of an hour, by block time. */
const QUARTER_SECONDS = 900

/** Returns the number of the quarter of an hour, since the epoch, of a time in Unix seconds. */
export const quarterOf = (timestamp: number): number => Math.floor(timestamp / QUARTER_SECONDS)

/**
 * One pass samples every due vault and, page by page, every due agent. `previous` is the progress before the pass;
 * `progress` is stored once the pass is complete.
 */
export type SamplingPass = {
  vaults: Address[]
  progress: SamplingProgress
  previous: SamplingProgress | undefined
}

/**
 * Starts a pass at the cursor, with every vault in a new quarter of an hour, otherwise with the vaults that changed.
 */
export async function startPass(
  db: D1Database,
  { block, timestamp }: IndexCursor,
  vaults: readonly Address[],
): Promise<SamplingPass> {
  const progress = { changedTo: block, quarter: quarterOf(timestamp) }
  const previous = await readSamplingProgress(db)
  if (previous?.quarter !== progress.quarter) return { vaults: [...vaults], progress, previous }
  const changed = await selectColumn<Address>(db, CHANGED_VAULTS, previous.changedTo, block)
  return { vaults: vaults.filter(vault => changed.includes(vault)), progress, previous }
}

/**
 * Reads a page of the agents to sample, by id: agents that traded, got another cap, or lost samples in a reorg since the
 * last pass; in a new quarter of an hour also those with open positions and no sample in it; before the first complete
 * pass, all agents without a sample. A sampled agent is no longer due, so an interrupted pass continues where it
 * stopped.
 */
export async function readDueAgents(
  db: D1Database,
  { previous, progress }: SamplingPass,
  { after, limit }: { after: bigint; limit: number },
): Promise<bigint[]> {
  const page = [Number(after), limit]
  const ids =
    previous === undefined
      ? await selectColumn<number>(db, AGENTS_WITHOUT_SAMPLE, ...page)
      : await selectColumn<number>(
          db,
          DUE_AGENTS,
          ...page,
          previous.changedTo,
          progress.changedTo,
          previous.quarter === progress.quarter ? 0 : progress.quarter * QUARTER_SECONDS,
        )
  return ids.map(BigInt)
}

async function selectColumn<Value>(db: D1Database, sql: string, ...bindings: (string | number)[]): Promise<Value[]> {
  const rows = await db
    .prepare(sql)
    .bind(...bindings)
    .raw<[Value]>()
  return rows.map(([value]) => value)
}

const AGENTS_WITHOUT_SAMPLE = `SELECT agent_id FROM agents INDEXED BY agents_now
  WHERE until IS NULL AND agent_id > ?1
    AND NOT EXISTS (SELECT 1 FROM equity INDEXED BY equity_newest WHERE equity.agent_id = agents.agent_id AND equity.until IS NULL)
  ORDER BY agent_id LIMIT ?2`
/**
 * The agents with positions have a separate limit, so that a page does not read all of them. The plus signs keep SQLite from
 * reading all events by agent instead of the new ones.
 */
const DUE_AGENTS = `SELECT agent_id FROM (
    SELECT agent_id FROM trades INDEXED BY trades_place WHERE block > ?3 AND block <= ?4
    UNION SELECT +agent_id FROM events WHERE block > ?3 AND block <= ?4 AND +agent_id IS NOT NULL
    UNION SELECT agent_id FROM unsampled
    UNION SELECT agent_id FROM (
      SELECT agent_id FROM equity INDEXED BY equity_open
      WHERE until IS NULL AND open_count > 0 AND agent_id > ?1 AND timestamp < ?5 ORDER BY agent_id LIMIT ?2)
  ) WHERE agent_id > ?1 ORDER BY agent_id LIMIT ?2`
const CHANGED_VAULTS = `SELECT vault FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT contract FROM events WHERE block > ?1 AND block <= ?2 AND name IN ('Deposit', 'Withdraw')`
