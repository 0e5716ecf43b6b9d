import type { Address } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { refuse } from '../errors.ts'
import { type Block, maybe, must, read, type TradingChain } from './client.ts'
import { agentCalls, toAgent } from './registry.ts'
import type { ExitRule } from './typed-data.ts'

/** A position with its ladder. `exitRules` before `nextRuleIndex` have fired, the others are pending. */
export type Position = {
  positionId: bigint
  agentId: bigint
  vault: Address
  token: Address
  /** The token's base units. */
  tokenAmount: bigint
  /** USDC base units for one whole token. */
  entryPriceUsdc: bigint
  usdcCostBasis: bigint
  maxSlippageBps: number
  /** 0 open, 1 closed. */
  status: number
  nextRuleIndex: number
  openedAt: bigint
  realizedPnlUsdc: bigint
  exitRules: readonly ExitRule[]
  /** Mark to market at the oracle price; undefined when closed or when there is no fresh price. */
  unrealizedPnlUsdc: bigint | undefined
}

const positions = ({ trading }: TradingChain) =>
  ({ address: trading.PositionManager, abi: positionManagerAbi }) as const

/** The calls that read one position; `toPosition` puts their results together. */
export const positionCalls = (chain: TradingChain, positionId: bigint) =>
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

type Outcome<T> =
  | { status: 'success'; result: T; error?: undefined }
  | { status: 'failure'; error: Error; result?: undefined }
type OnChain = Omit<Position, 'exitRules' | 'unrealizedPnlUsdc'>

/** The position, or undefined when there is none. */
export function toPosition(
  position: Outcome<OnChain>,
  exitRules: Outcome<readonly ExitRule[]>,
  unrealized: Outcome<bigint>,
): Position | undefined {
  const record = maybe(position)
  if (record === undefined || record.openedAt === 0n) return undefined
  return {
    ...record,
    exitRules: must(exitRules),
    unrealizedPnlUsdc: record.status === 0 ? maybe(unrealized) : undefined,
  }
}

const CALLS_PER_POSITION = 3

async function getPositions(chain: TradingChain, ids: readonly bigint[], at: Block): Promise<Position[]> {
  if (ids.length === 0) return []
  const { results } = await read(
    chain,
    ids.flatMap(id => positionCalls(chain, id)),
    at,
  )
  return ids.flatMap((_, index) => {
    const [record, rules, pnl] = results.slice(CALLS_PER_POSITION * index) as unknown as Parameters<typeof toPosition>
    return toPosition(record, rules, pnl) ?? []
  })
}

/** Reads the agent's open positions, oldest first. Throws AGENT_NOT_FOUND. */
export async function getOpenPositions(chain: TradingChain, agentId: bigint) {
  const { block, results } = await read(chain, [
    ...agentCalls(chain, agentId),
    { ...positions(chain), functionName: 'getOpenPositionIds', args: [agentId] },
  ] as const)
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  return { block, positions: await getPositions(chain, must(results[2]), block) }
}

const SCAN_WINDOW = 500n

/**
 * Reads the agent's closed positions among the newest 500 of all agents, newest first, at most `limit`.
 * Throws AGENT_NOT_FOUND.
 */
export async function getClosedPositions(chain: TradingChain, agentId: bigint, limit: number) {
  const { block, results } = await read(chain, [
    ...agentCalls(chain, agentId),
    { ...positions(chain), functionName: 'positionCount' },
  ] as const)
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  const count = must(results[2])
  const first = count > SCAN_WINDOW ? count - SCAN_WINDOW + 1n : 1n
  const ids = Array.from({ length: Number(count - first + 1n) }, (_, index) => count - BigInt(index))
  const scanned = await getPositions(chain, ids, block)
  const closed = scanned.filter(position => position.agentId === agentId && position.status === 1)
  return { block, positions: closed.slice(0, limit) }
}

/** Reads one position of an agent. Throws AGENT_NOT_FOUND or POSITION_NOT_FOUND, also for another agent's position. */
export async function getPosition(chain: TradingChain, agentId: bigint, positionId: bigint) {
  const { block, results } = await read(chain, [
    ...agentCalls(chain, agentId),
    ...positionCalls(chain, positionId),
  ] as const)
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  const position = toPosition(results[2], results[3], results[4])
  if (position === undefined || position.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId: `${agentId}`, positionId: `${positionId}` })
  return { block, position }
}
