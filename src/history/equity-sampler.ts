import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readWorth, type WorthReading } from '../chain/equity-and-worth.ts'
import { blockRequest } from '../rpc/requests.ts'
import { CursorMoved } from './commit-at-cursor.ts'
import { quarterOf, type SamplingPass } from './due-samples.ts'
import type { SampleStore } from './sample-store.ts'
import type { IndexRows } from './store.ts'
import type { IndexCursor } from './tables/cursor.ts'

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
    const agents = await samples.readDueAgents(current, { after: current.after, limit })
    // After a failure, vaults are sampled on their own.
    const dueVaults = limit === MAX_AGENTS_PER_ROUND || agents.length === 0 ? current.vaults : []
    if (agents.length === 0 && dueVaults.length === 0) return finish(cursor, current)
    let reading: WorthReading
    let reached: IndexCursor | undefined
    try {
      reading = await readWorth(chain, { agents, vaults: dueVaults })
      reached = await followTo(Number(reading.block.number))
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
    return hasMore || finish(reached, next)
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
