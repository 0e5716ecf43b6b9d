import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { refuse } from '../errors/catalogue.ts'
import { PositionStatus } from '../protocol/enums.ts'
import type { Position } from '../protocol/position.ts'
import type { ExitRule } from '../protocol/typed-data.ts'
import { agentCalls, agentOf, toAgent } from './agents.ts'
import { maybe, must, read, type TradingChain } from './chain.ts'
import { type Answer, type Outcome, outcomeOf } from './multicall.ts'
import { askReader } from './service-reader.ts'

const positions = ({ trading }: TradingChain) =>
  ({ address: trading.PositionManager, abi: positionManagerAbi }) as const

/** The calls that read one position; `toPosition` puts their results together. */
const positionCalls = (chain: TradingChain, positionId: bigint) =>
  [
    { ...positions(chain), functionName: 'getPosition', args: [positionId] },
    { ...positions(chain), functionName: 'getExitRules', args: [positionId] },
    {
      address: chain.trading.TradeRouterLens,
      abi: tradeRouterLensAbi,
      functionName: 'positionUnrealizedPnlUsdc',
      args: [positionId],
    },
  ] as const

type OnChain = Omit<Position, 'exitRules' | 'unrealizedPnlUsdc'>

/** The position, or undefined when there is none. */
function toPosition(
  position: Outcome<OnChain>,
  exitRules: Outcome<readonly ExitRule[]>,
  unrealized: Outcome<bigint>,
): Position | undefined {
  const record = maybe(position)
  if (record === undefined || record.openedAt === 0n) return undefined
  return {
    ...record,
    exitRules: must(exitRules),
    unrealizedPnlUsdc: record.status === PositionStatus.Open ? maybe(unrealized) : undefined,
  }
}

/** The position that the contracts answered the reader, or undefined when there is none. */
export const positionOf = ({ record, exitRules, unrealizedPnl }: PositionAnswers) =>
  toPosition(
    outcomeOf(positionManagerAbi, 'getPosition', record),
    outcomeOf(positionManagerAbi, 'getExitRules', exitRules),
    outcomeOf(tradeRouterLensAbi, 'positionUnrealizedPnlUsdc', unrealizedPnl),
  )
type PositionAnswers = { record: Answer; exitRules: Answer; unrealizedPnl: Answer }

/** Reads the agent's open positions, oldest first. Throws AGENT_NOT_FOUND. */
export async function getOpenPositions(chain: TradingChain, agentId: bigint) {
  const { block, answers } = await askReader(chain, 'openPositions', agentId)
  const [agent, ids, positions] = answers
  if (agentOf(agent) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  must(outcomeOf(positionManagerAbi, 'getOpenPositionIds', ids))
  return { block, positions: positions.flatMap(position => positionOf(position) ?? []) }
}

/** How many of all agents' newest positions the reader's scan looks at. */
export const SCAN_WINDOW = 500

/**
 * Reads the agent's closed positions among the newest 500 of all agents, newest first, at most `limit`.
 * Throws AGENT_NOT_FOUND.
 */
export async function getRecentClosedPositions(chain: TradingChain, agentId: bigint, limit: number) {
  const { block, answers } = await askReader(chain, 'closedPositions', agentId, BigInt(limit))
  const [agent, count, positions] = answers
  if (agentOf(agent) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  must(outcomeOf(positionManagerAbi, 'positionCount', count))
  return { block, positions: positions.flatMap(position => positionOf(position) ?? []) }
}

/** Reads positions by their ids, in that order; one that there is not is left out. */
export async function getPositions(chain: TradingChain, ids: readonly bigint[]): Promise<Position[]> {
  if (ids.length === 0) return []
  const { results } = await read(
    chain,
    ids.flatMap(id => [...positionCalls(chain, id)]),
  )
  return ids.flatMap((_, index) => {
    const [record, exitRules, unrealized] = results.slice(3 * index) as unknown as Parameters<typeof toPosition>
    return toPosition(record, exitRules, unrealized) ?? []
  })
}

/** Reads one position of an agent. Throws AGENT_NOT_FOUND or POSITION_NOT_FOUND, also for another agent's position. */
export async function getPosition(chain: TradingChain, agentId: bigint, positionId: bigint) {
  const { block, results } = await read(chain, [
    ...agentCalls(chain, agentId),
    ...positionCalls(chain, positionId),
  ] as const)
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  const position = toPosition(results[2], results[3], results[4])
  if (position === undefined || position.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId })
  return { block, position }
}
