import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readWorth } from '../chain/equity-and-worth.ts'
import { blockRequest } from '../rpc/requests.ts'
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
  /** The current pass, and the last agent that it has sampled. */
  let pass: (SamplingPass & { after: bigint }) | undefined
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
   * not get there. Returns whether more is due. Throws CHAIN_UNREACHABLE or CursorMoved; then the page can be repeated.
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
      pass = { ...started, after: 0n }
      sampledQuarter = pass.progress.quarter
    }
    const current = pass
    const agents = await samples.readDueAgents(current, { after: current.after, limit: MAX_AGENTS_PER_ROUND })
    if (agents.length === 0 && current.vaults.length === 0) return finish(cursor, current)
    const reading = await readWorth(chain, { agents, vaults: current.vaults })
    const reached = await followTo(Number(reading.block.number))
    if (reached === undefined || !(await isOnBranch(reading.block, reached))) return false
    await samples.write(reached, reading)
    if (reorgs !== reorgsBefore) return true
    const sampledCount = agents.length - reading.remainingAgents.length
    pass = { ...current, vaults: [], after: agents[Math.max(sampledCount, 1) - 1] ?? current.after }
    return agents.length === MAX_AGENTS_PER_ROUND || reading.remainingAgents.length > 0 || finish(reached, current)
  }

  async function finish(cursor: IndexCursor, completed: SamplingPass): Promise<false> {
    await samples.finish(cursor, completed)
    pass = undefined
    return false
  }

  /** Returns whether the chain has both the sampled block and the cursor's block. */
  async function isOnBranch(sampled: { number: bigint; hash: string }, cursor: IndexCursor): Promise<boolean> {
    const [own, block] = await chain.rpc.batch([blockRequest(cursor.block), blockRequest(sampled.number)])
    return own.result?.hash === cursor.hash && block.result?.hash === sampled.hash
  }

  return { onAppend, onReorg, isDue, sampleRound }
}
