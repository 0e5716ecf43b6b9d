import type { Address } from 'viem'
import type { Chain, TradingChain } from '../chain/configured-chain.ts'
import { readWorth, type WorthReading } from '../chain/equity-and-worth.ts'
import { blockRequest } from '../rpc/requests.ts'
import { continueTrackRecords } from './compute-track-records.ts'
import { deleteOldStandings, thinOldPrices, thinOldSamples } from './delete-old-rows.ts'
import type { IndexRows } from './store.ts'
import { rollUpCandles } from './tables/candles.ts'
import { CursorMoved, commitAtCursor, type IndexCursor } from './tables/cursor.ts'
import {
  equityTable,
  insertEquities,
  insertVaultWorths,
  readSamplingProgress,
  type SamplingProgress,
  setSamplingProgress,
  vaultWorthTable,
} from './tables/samples.ts'

/** Agents per page. Those for which the gas of the call did not suffice move to the next page. */
const MAX_AGENTS_PER_ROUND = 300

export type EquitySampler = ReturnType<typeof createEquitySampler>

/**
 * Samples the equity of agents and the worth of vaults at the newest block. A sample is written once the index has reached
 * its block, so a reorg of the block deletes the sample too.
 */
export function createEquitySampler({
  chain,
  samples,
  vaults,
}: {
  chain: TradingChain
  samples: SampleStore
  vaults: () => readonly Address[]
}) {
  /** The current pass, the last agent that it has sampled, and the agents that it skipped. */
  let pass: (SamplingPass & { after: bigint; skipped: readonly bigint[] }) | undefined
  /** A page whose block the index has not reached yet. */
  let unwritten:
    | { of: typeof pass; agents: readonly bigint[]; dueVaults: readonly Address[]; reading: WorthReading }
    | undefined
  let agentsPerRound = MAX_AGENTS_PER_ROUND
  let sampledQuarter: number | undefined
  let hasNewEvents = true
  let reorgs = 0

  /** Records which samples the new rows of the index make due. */
  function onAppend({ trades, events }: Pick<IndexRows, 'trades' | 'events'>) {
    hasNewEvents ||= trades.length > 0 || events.length > 0
  }

  /** Ends the pass: the reorg may have undone the events that made its agents due. */
  function onReorg() {
    pass = undefined
    hasNewEvents = true
    reorgs++
  }

  /** Returns whether something may be due at the cursor. */
  const isDue = ({ timestamp }: IndexCursor): boolean =>
    pass !== undefined || hasNewEvents || sampledQuarter !== quarterOf(timestamp)

  /**
   * Samples one page of what is due. `followTo` indexes up to a block and returns the cursor, or undefined if it did
   * not get there. Returns whether more is due. Throws CHAIN_UNREACHABLE or CursorMoved; then the page can be repeated. After
   * any error but CursorMoved, the next page is smaller, and an agent that fails alone is skipped until the next pass.
   */
  async function sampleRound(
    cursor: IndexCursor,
    followTo: (block: number) => Promise<IndexCursor | undefined>,
  ): Promise<boolean> {
    const reorgsBefore = reorgs
    if (pass === undefined) {
      hasNewEvents = false
      const started = await samples.startPass(cursor, vaults()).catch(error => {
        hasNewEvents = true
        throw error
      })
      if (reorgs !== reorgsBefore) return true
      pass = { ...started, after: 0n, skipped: [] }
      sampledQuarter = pass.progress.quarter
    }
    const current = pass
    const limit = agentsPerRound
    const kept = unwritten?.of === current ? unwritten : undefined
    const agents = kept?.agents ?? (await samples.readDueAgents(current, { after: current.after, limit }))
    // After a failure, vaults are sampled on their own.
    const dueVaults = kept?.dueVaults ?? (limit === MAX_AGENTS_PER_ROUND || agents.length === 0 ? current.vaults : [])
    if (agents.length === 0 && dueVaults.length === 0) return finish(cursor, current)
    let reading: WorthReading
    let reached: IndexCursor | undefined
    try {
      reading = kept?.reading ?? (await readWorth(chain, { agents, vaults: dueVaults }))
      reached = await followTo(Number(reading.block.number))
      unwritten = reached === undefined ? { of: current, agents, dueVaults, reading } : undefined
      if (reached === undefined || !(await isOnBranch(reading.block, reached))) return false
      await samples.write(reached, reading)
    } catch (error) {
      if (!(error instanceof CursorMoved) && pass === current) narrow(current, limit, agents)
      throw error
    }
    if (reorgs !== reorgsBefore) return true
    agentsPerRound = Math.min(limit * 2, MAX_AGENTS_PER_ROUND)
    const sampledCount = agents.length - reading.remainingAgents.length
    const remainingVaults = current.vaults.filter(vault => !dueVaults.includes(vault))
    const next = { ...current, vaults: remainingVaults, after: agents[Math.max(sampledCount, 1) - 1] ?? current.after }
    pass = next
    const hasMore = agents.length === limit || reading.remainingAgents.length > 0 || remainingVaults.length > 0
    if (hasMore) return true
    await finish(reached, next)
    return kept !== undefined // events may have followed since the page was read
  }

  /** Halves the next page after a failure. An agent that fails alone is passed over, and so are vaults. */
  function narrow(failed: NonNullable<typeof pass>, limit: number, agents: readonly bigint[]) {
    const [agent] = agents
    if (limit > 1) agentsPerRound = Math.max(1, Math.ceil(agents.length / 2))
    else if (agent === undefined) pass = { ...failed, vaults: [] }
    else pass = { ...failed, after: agent, skipped: [...failed.skipped, agent] }
  }

  async function finish(cursor: IndexCursor, completed: NonNullable<typeof pass>): Promise<false> {
    await samples.finish(cursor, completed, completed.skipped)
    pass = undefined
    if (completed.previous?.quarter !== completed.progress.quarter) await samples.prune(cursor)
    return false
  }

  /** Returns whether the chain has both the sampled block and the cursor's block. */
  async function isOnBranch(sampled: { number: bigint; hash: string }, cursor: IndexCursor): Promise<boolean> {
    const [own, block] = await chain.rpc.batch([blockRequest(cursor.block), blockRequest(sampled.number)])
    return own.result?.hash === cursor.hash && block.result?.hash === sampled.hash
  }

  return { onAppend, onReorg, isDue, sampleRound }
}

/** State that can change without an event is sampled once per quarter of an hour, by block time. */
const QUARTER_SECONDS = 900

/** Returns the number of the quarter of an hour, since the epoch, of a time in Unix seconds. */
const quarterOf = (timestamp: number): number => Math.floor(timestamp / QUARTER_SECONDS)

/**
 * One pass samples every due vault and, page by page, every due agent. `previous` is the progress before the pass;
 * `progress` is stored once the pass is complete.
 */
type SamplingPass = {
  vaults: Address[]
  progress: SamplingProgress
  previous: SamplingProgress | undefined
}

/**
 * Starts a pass at the cursor, with every vault in a new quarter of an hour, otherwise with the vaults that changed.
 */
async function startPass(
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

const HOUR_SECONDS = 3_600

type SampleStore = ReturnType<typeof openSampleStore>

/** Opens the samples of the index for their only writer. */
export function openSampleStore(db: D1Database, chain: Chain) {
  return {
    /** Starts a pass of samples. */
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
        [rollUpCandles, thinOldSamples, thinOldPrices, deleteOldStandings].map(async statementsOf =>
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
