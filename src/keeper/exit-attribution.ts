import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import { isAddressEqual } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readExecutedExits } from '../chain/read-executed-exits.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import type { Executor } from '../executor/client.ts'
import { executedEntry } from './exit-state-transitions.ts'
import { evaluationOf } from './last-evaluation.ts'
import type { KeeperStore } from './store.ts'

/** How many already read blocks are read again, because a reorg may have moved events into them. */
const MAX_EVENT_REORG = 8n

type ExitEvent = Awaited<ReturnType<typeof readExecutedExits>>[number]

/**
 * Records exits that this keeper did not send, and changes that a reorg made to recent exits, with one request for
 * their events. `since` is the block of the previous cycle. Never throws: without the events, rules are recorded as
 * fired by others, and recent exits stay as they are.
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
    const ofPosition = exits.filter(exit => exit.positionId === positionId)
    const ownerSale = isClosedForOwner(position) ? ofPosition.findLast(exit => exit.ruleIndex === undefined) : undefined
    const exit = ownerSale ?? ofPosition.findLast(exit => exit.ruleIndex === nextRuleIndex - 1)
    const ruleIndex = ownerSale ? undefined : nextRuleIndex - 1
    const isRecorded = entry.outcome?.kind === 'executed' && entry.outcome.ruleIndex === ruleIndex
    if (entry.firedRules < nextRuleIndex || (ownerSale && !isRecorded)) {
      const executed = executedEntry(entry, evaluationOf(watched, position), {
        kind: 'executed',
        firedBy: 'others',
        at: `${watched.block.timestamp}`,
        ...(ruleIndex !== undefined && { ruleIndex }),
        ...(exit && factsOf(exit)),
      })
      store.put(executed)
    } else if (exit && entry.outcome?.kind === 'executed' && isRecorded)
      store.put({ ...entry, outcome: { ...entry.outcome, ...factsOf(exit) } })
  }
}

const isClosedForOwner = (position: WatchedPosition): boolean =>
  position.status === PositionStatus.Closed && isOwnerClosing(position)
