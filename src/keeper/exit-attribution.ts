import { isAddressEqual } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readExecutedExits } from '../chain/read-executed-exits.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import type { Executor } from '../executor/client.ts'
import type { WatchedPosition } from '../protocol/position.ts'
import { executedEntry } from './exit-state-transitions.ts'
import { evaluationOf } from './last-evaluation.ts'
import type { KeeperStore } from './store.ts'

/** A reorg may have moved events into blocks that were read before, by this many blocks. */
const MAX_EVENT_REORG = 8n

/**
 * Records exits that fired although this keeper has no transaction for them, with one request for their events. `since`
 * is the block of the previous cycle. Never throws: without the events, exits are recorded as fired by others.
 */
export async function attributeExits(
  { chain, executor, store }: { chain: TradingChain; executor: Executor; store: KeeperStore },
  { positions, watched, since }: { positions: readonly WatchedPosition[]; watched: WatchedPositions; since: bigint },
): Promise<void> {
  if (positions.length === 0) return
  const exits = await readExecutedExits(chain, {
    positionIds: positions.map(({ positionId }) => positionId),
    fromBlock: since > MAX_EVENT_REORG ? since - MAX_EVENT_REORG : 0n,
    toBlock: watched.block.number,
  }).catch(() => [])
  for (const position of positions) {
    const { positionId, nextRuleIndex } = position
    const entry = store.entry(positionId)
    // The outcome of our own transaction may have been recorded during the request.
    if (entry === undefined || entry.firedRules >= nextRuleIndex) continue
    const ruleIndex = nextRuleIndex - 1
    const exit = exits.findLast(exit => exit.positionId === positionId && exit.ruleIndex === ruleIndex)
    const executed = executedEntry(entry, evaluationOf(watched, position), {
      kind: 'executed',
      firedBy: exit && isAddressEqual(exit.keeper, executor.address) ? 'keeper' : 'others',
      at: `${watched.block.timestamp}`,
      ruleIndex,
      ...(exit && { transactionHash: exit.transactionHash, usdcOut: `${exit.usdcOut}` }),
    })
    store.put(executed)
  }
}
