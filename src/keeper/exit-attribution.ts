import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { decodeExit } from '@agent-trading-service/protocol/exit-results'
import { isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import { isAddressEqual, numberToHex } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import { getLogs } from '../rpc/logs.ts'
import type { CycleParts } from './exit-sender.ts'
import { evaluationOf, executedEntry } from './position-entry.ts'

/** How many already read blocks are read again, because a reorg may have moved events into them. */
const MAX_EVENT_REORG = 8n
const EXIT_TOPICS = [eventTopic(tradeRouterAbi, 'ExitExecuted'), eventTopic(tradeRouterAbi, 'OwnerCloseExecuted')]

type ExitEvent = Awaited<ReturnType<typeof readExecutedExits>>[number]

/**
 * Returns the completed exits of positions in a range of blocks, oldest first, by any keeper. Throws CHAIN_UNREACHABLE.
 */
async function readExecutedExits(
  { rpc, trading }: TradingChain,
  positionIds: readonly bigint[],
  range: { fromBlock: bigint; toBlock: bigint },
) {
  const topics = [EXIT_TOPICS, positionIds.map(id => numberToHex(id, { size: 32 }))]
  const logs = await getLogs(rpc, { address: trading.TradeRouter, topics }, range)
  return logs.flatMap(log => {
    const exit = decodeExit(log)
    return exit ? [{ ...exit, transactionHash: log.transactionHash }] : []
  })
}

/**
 * Records exits that this keeper did not send, and changes that a reorg made to recent exits, with one request for
 * their events. `since` is the block of the previous cycle. Never throws: without the events, rules are recorded as
 * fired by others, and recent exits stay as they are.
 */
export async function attributeExits(
  { chain, executor, book }: CycleParts,
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
  const evaluated = recent.map(({ positionId }) => BigInt(book.entry(positionId)?.evaluation?.blockNumber ?? since))
  const from = [since, ...evaluated].reduce((lowest, block) => (block < lowest ? block : lowest))
  const positionIds = positions.map(({ positionId }) => positionId)
  const exits = await readExecutedExits(chain, positionIds, {
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
    const entry = book.entry(positionId)
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
      book.put(executed)
    } else if (exit && entry.outcome?.kind === 'executed' && isRecorded)
      book.put({ ...entry, outcome: { ...entry.outcome, ...factsOf(exit) } })
  }
}

const isClosedForOwner = (position: WatchedPosition): boolean =>
  position.status === PositionStatus.Closed && isOwnerClosing(position)
