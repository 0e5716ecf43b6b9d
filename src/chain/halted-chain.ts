import { ageSeconds } from '../clock.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { Block, Chain } from './configured-chain.ts'

/** How old the newest block of a chain may be that makes blocks all the time. No such chain pauses for so long. */
const MAX_BLOCK_AGE_SECONDS = 60

type ObservedChain = Pick<Chain, 'rpc' | 'makesBlocksOnDemand'>

/**
 * Returns whether a chain that makes blocks all the time makes none, as far as all nodes show. What its nodes return
 * may be far behind the true state. While the newest block changes, an old one only shows that the clock is wrong.
 */
export const isHalted = ({ rpc, makesBlocksOnDemand }: ObservedChain, newest: Block): boolean =>
  !makesBlocksOnDemand &&
  ageSeconds(newest) > MAX_BLOCK_AGE_SECONDS &&
  !rpc.heads.hasAdvancedWithin(MAX_BLOCK_AGE_SECONDS * 1_000)

/** Returns that the chain is halted, as a clause; undefined while it is not. */
export function haltProblem(chain: ObservedChain, newest: Block): string | undefined {
  if (!isHalted(chain, newest)) return undefined
  return `the newest block, ${newest.number}, is ${ageSeconds(newest)} seconds old: the nodes are frozen, or the chain has halted`
}

/** Returns the refusal of everything that trades while the chain is halted; undefined while it is not. */
export function haltRefusal(chain: ObservedChain, newest: Block): Refusal | undefined {
  const problem = haltProblem(chain, newest)
  return problem === undefined
    ? undefined
    : refuse('NOT_READY', { problem }).withRemedy(
        'Nothing was sent. Try again in a moment; `problems` of /health/ready names the nodes.',
      )
}
