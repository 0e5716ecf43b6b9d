import { PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Position } from '@agent-trading-service/protocol/position'
import type { Address } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { refuse } from '../errors/refuse.ts'
import { existing, foundAgent } from './agent-record.ts'
import { agentRecordCall, decodeAgent } from './agents.ts'
import { callReader } from './call-service-reader.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { positionManager, tradeRouterLens } from './contracts.ts'
import { type CallResult, decodeResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { readAtNewestIfStale } from './newest-prices.ts'
import { call, optional, readTree, type ValuesOf } from './read-tree.ts'
import { decodeMultiplier, multiplierCalls, multiplierIn } from './token-facts.ts'
import { readWithToken } from './traded-tokens.ts'

/** The number of newest positions, of all agents, that `getRecentClosedPositions` looks at. */
export const SCAN_WINDOW = 500

const positionCalls = (chain: TradingChain, positionId: bigint) => ({
  record: optional(call(positionManager(chain), 'getPosition', [positionId])),
  exitRules: optional(call(positionManager(chain), 'getExitRules', [positionId])),
  unrealizedPnl: optional(call(tradeRouterLens(chain), 'positionUnrealizedPnlUsdc', [positionId])),
  capitalMode: optional(call(positionManager(chain), 'capitalModeOf', [positionId])),
})

type PositionValues = ValuesOf<ReturnType<typeof positionCalls>>

/** Returns the position, or undefined if it does not exist. */
function toPosition({
  record,
  exitRules,
  unrealizedPnl,
  capitalMode,
  multiplier,
}: PositionValues & { multiplier?: bigint | undefined }): Position | undefined {
  if (record === undefined || record.openedAt === 0n) return undefined
  if (exitRules === undefined) throw new Error(`Position ${record.positionId} has no readable exit rules`)
  return {
    ...record,
    exitRules,
    unrealizedPnlUsdc: record.status === PositionStatus.Open ? unrealizedPnl : undefined,
    capitalMode,
    multiplier,
  }
}

/** Returns the position in the service reader's results, or undefined if it does not exist. */
export const decodePosition = (
  results: Record<keyof PositionValues | 'multiplier', CallResult>,
): Position | undefined =>
  toPosition({
    record: tryDecodeResult(positionManagerAbi, 'getPosition', results.record),
    exitRules: tryDecodeResult(positionManagerAbi, 'getExitRules', results.exitRules),
    unrealizedPnl: tryDecodeResult(tradeRouterLensAbi, 'positionUnrealizedPnlUsdc', results.unrealizedPnl),
    capitalMode: tryDecodeResult(positionManagerAbi, 'capitalModeOf', results.capitalMode),
    multiplier: decodeMultiplier(results.multiplier).multiplier,
  })

/** Reads an agent's open positions, oldest first. Throws AGENT_NOT_FOUND. */
export const getOpenPositions = (chain: TradingChain, agentId: bigint) =>
  readAtNewestIfStale(
    chain,
    priced => readOpenPositions(priced, agentId),
    ({ positions }) => positions.flatMap(staleTokenOf),
  )

/** Returns the token of an open position whose price is too old to value it. */
const staleTokenOf = ({ status, unrealizedPnlUsdc, token }: Position): Address[] =>
  status === PositionStatus.Open && unrealizedPnlUsdc === undefined ? [token] : []

async function readOpenPositions(
  chain: TradingChain,
  agentId: bigint,
): Promise<{ block: Block; positions: Position[] }> {
  const { block, values } = await callReader(chain, 'openPositions', agentId)
  const { agent, ids, positions } = values
  foundAgent(decodeAgent(agent), agentId)
  decodeResult(positionManagerAbi, 'getOpenPositionIds', ids) // throws if the reader could not list them
  return { block, positions: positions.flatMap(results => decodePosition(results) ?? []) }
}

/**
 * Reads an agent's closed positions among the newest 500 positions of all agents, newest first, at most `limit`.
 * Throws AGENT_NOT_FOUND.
 */
export async function getRecentClosedPositions(
  chain: TradingChain,
  agentId: bigint,
  limit: number,
): Promise<{ block: Block; positions: Position[] }> {
  const { block, values } = await callReader(chain, 'closedPositions', agentId, BigInt(limit))
  const { agent, count, positions } = values
  foundAgent(decodeAgent(agent), agentId)
  decodeResult(positionManagerAbi, 'positionCount', count) // throws if the reader could not scan them
  return { block, positions: positions.flatMap(results => decodePosition(results) ?? []) }
}

/** Reads positions by id, in that order. Ids that do not exist are left out. */
export async function getPositions(chain: TradingChain, positionIds: readonly bigint[]): Promise<Position[]> {
  if (positionIds.length === 0) return []
  const { values } = await readTree(
    chain,
    positionIds.map(positionId => positionCalls(chain, positionId)),
  )
  return values.flatMap(calls => toPosition(calls) ?? [])
}

/** Reads a position of an agent. Throws AGENT_NOT_FOUND, or POSITION_NOT_FOUND, also if it is another agent's. */
export const getPosition = (chain: TradingChain, agentId: bigint, positionId: bigint) =>
  readAtNewestIfStale(
    chain,
    priced => readPosition(priced, agentId, positionId),
    ({ position }) => staleTokenOf(position),
  )

async function readPosition(
  chain: TradingChain,
  agentId: bigint,
  positionId: bigint,
): Promise<{ block: Block; position: Position }> {
  const { block, values } = await readWithToken(chain, positionId, async guess => {
    const reading = await readTree(chain, {
      agent: agentRecordCall(chain, agentId),
      position: positionCalls(chain, positionId),
      multiplier: guess && multiplierCalls(chain, guess),
    })
    return { ...reading, token: reading.values.position.record?.token }
  })
  foundAgent(existing(values.agent), agentId)
  const position = toPosition({
    ...values.position,
    multiplier: values.multiplier && multiplierIn(values.multiplier).multiplier,
  })
  if (position === undefined || position.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId })
  return { block, position }
}
