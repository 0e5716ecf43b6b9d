import type { Address } from 'viem'
import type { TradingChain } from '../chain/chain.ts'
import { readWorth } from '../chain/equity.ts'
import { blockRequest, toHeader } from '../rpc/requests.ts'
import type { Cursor, Rows } from './store.ts'
import { type Due, type Mark, QUARTER_SECONDS, type Samples } from './tables/samples.ts'

/** Agents of one turn: what one call has no gas for comes with the next. */
const AGENTS_PER_TURN = 300

export type Sampler = ReturnType<typeof createSampler>

/**
 * Takes samples of what agents and vaults are worth, of the newest block. A sample is written when the index has come to
 * its block, so that it goes with the block when the chain takes that back.
 */
export function createSampler({
  chain,
  samples,
  vaults,
}: {
  chain: TradingChain
  samples: Samples
  vaults: () => readonly Address[]
}) {
  let queue: Due | undefined
  let quarter: number | undefined
  let hasNews = true

  /** Takes note of what the index has got. */
  function noticed({ trades, events }: Pick<Rows, 'trades' | 'events'>) {
    hasNews ||= trades.length > 0 || events.length > 0
  }

  /** What was due is found again: the chain has taken back what it was found in. */
  function forget() {
    queue = undefined
    hasNews = true
  }

  /** Whether there is something to look at, once the index is at a block. */
  const isDue = ({ timestamp }: Cursor) => queue !== undefined || hasNews || quarter !== quarterOf(timestamp)

  /**
   * Samples some of who is due. `follow` brings the index to a block and answers where it is. Answers whether there are
   * more. Throws CHAIN_UNREACHABLE or CursorMoved; then nothing is noted as done.
   */
  async function turn(cursor: Cursor, follow: (block: number) => Promise<Cursor | undefined>): Promise<boolean> {
    if (queue === undefined) {
      hasNews = false
      queue = await samples.due(cursor, vaults()).catch(error => {
        hasNews = true
        throw error
      })
      quarter = queue.mark.quarter
    }
    const { agents, vaults: dueVaults, mark } = queue
    if (agents.length === 0 && dueVaults.length === 0) return finish(cursor, mark)
    const reading = await readWorth(chain, { agents: agents.slice(0, AGENTS_PER_TURN), vaults: dueVaults })
    const at = await follow(Number(reading.block.number))
    if (at === undefined || queue === undefined || !(await isOn(at, reading.block))) return false
    await samples.write(at, reading)
    queue = { agents: [...reading.remainingAgents, ...agents.slice(AGENTS_PER_TURN)], vaults: [], mark }
    return queue.agents.length > 0 || finish(at, mark)
  }

  async function finish(cursor: Cursor, mark: Mark): Promise<false> {
    await samples.note(cursor, mark)
    queue = undefined
    return false
  }

  /** Whether a block is of the chain that the index is at. */
  async function isOn(at: Cursor, block: { number: bigint; hash: string }): Promise<boolean> {
    const [own, sampled] = await chain.rpc.batch([blockRequest(at.block), blockRequest(block.number)])
    return toHeader(own.result)?.hash === at.hash && toHeader(sampled.result)?.hash === block.hash
  }

  return { noticed, forget, isDue, turn }
}

const quarterOf = (timestamp: number) => Math.floor(timestamp / QUARTER_SECONDS)
