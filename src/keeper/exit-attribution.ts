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

type ExitEvent = Awaited<ReturnType<typeof readExecutedExits>>[number]

/**
 * Records exits that fired although this keeper has no transaction for them, and what a reorg changed about recent ones, with
 * one request for their events. `since` is the block of the previous cycle. Never throws: without the events, exits are
 * recorded as fired by others, and recent ones stay as they are.
 */
export async function attributeExits(
  { chain, executor, store }: { chain: TradingChain; executor: Executor; store: KeeperStore },
  {
    unattributed,
    recent,
    watched,
    since,
  }: {
    unattributed: readonly WatchedPosition[]
    recent: readonly WatchedPosition[]
    watched: WatchedPositions
    since: bigint
  },
): Promise<void> {
  const positions = [...unattributed, ...recent]
  if (positions.length === 0) return
  const evaluated = recent.map(({ positionId }) => BigInt(store.entry(positionId)?.evaluation?.blockNumber ?? since))
  const from = [since, ...evaluated].reduce((lowest, block) => (block < lowest ? block : lowest))
  const exits = await readExecutedExits(chain, {
    positionIds: positions.map(({ positionId }) => positionId),
    fromBlock: from > MAX_EVENT_REORG ? from - MAX_EVENT_REORG : 0n,
    toBlock: watched.block.number,
  }).catch(() => [])
  const factsOf = (exit: ExitEvent) => ({
    firedBy: isAddressEqual(exit.keeper, executor.address) ? ('keeper' as const) : ('others' as const),
    transactionHash: exit.transactionHash,
    usdcOut: `${exit.usdcOut}`,
  })
  for (const position of positions) {
    const { positionId, nextRuleIndex } = position
    const entry = store.entry(positionId)
    if (entry === undefined) continue
    const ruleIndex = nextRuleIndex - 1
    const exit = exits.findLast(exit => exit.positionId === positionId && exit.ruleIndex === ruleIndex)
    if (entry.firedRules < nextRuleIndex) {
      const executed = executedEntry(entry, evaluationOf(watched, position), {
        kind: 'executed',
        firedBy: 'others',
        at: `${watched.block.timestamp}`,
        ruleIndex,
        ...(exit && factsOf(exit)),
      })
      store.put(executed)
    } else if (exit && entry.outcome?.kind === 'executed' && entry.outcome.ruleIndex === ruleIndex)
      store.put({ ...entry, outcome: { ...entry.outcome, ...factsOf(exit) } })
  }
}
