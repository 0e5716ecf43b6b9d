import { z } from 'zod'
import type { TradingChain } from '../chain/chain.ts'
import {
  getRecentClosedPositions,
  getOpenPositions as readOpen,
  getPosition as readPosition,
  SCAN_WINDOW,
} from '../chain/positions.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { refuse } from '../errors/catalogue.ts'
import { unlessUnavailable } from '../history/consistent-read.ts'
import { agentParams } from '../resources/agent.ts'
import {
  closedCursor,
  closedPositionList,
  positionAnswer,
  positionList,
  presentClosedCursor,
  presentPosition,
} from '../resources/position.ts'
import { agentId, positionId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const listPositions = defineOperation(
  {
    id: 'listPositions',
    tool: 'svc_get_agent_positions',
    method: 'get',
    path: '/agents/{agentId}/positions',
    tag: 'Positions',
    summary: "An agent's open positions",
    description: 'Open positions with their exit ladders and mark-to-market PnL.',
    params: agentParams,
    status: 200,
    output: positionList,
    errors: [400, 404, 502, 503],
  },
  async ({ trading }, { agentId }) => {
    const { block, positions } = await readOpen(trading, agentId)
    const symbol = await symbolsOf(
      trading,
      positions.map(({ token }) => token),
    )
    return {
      agentId: `${agentId}`,
      positions: positions.map(position => presentPosition(position, symbol(position.token))),
      asOf: presentBlock(block),
    }
  },
)

export const listClosedPositions = defineOperation(
  {
    id: 'listClosedPositions',
    tool: 'svc_list_closed_positions',
    method: 'get',
    path: '/agents/{agentId}/closed-positions',
    tag: 'Positions',
    summary: "An agent's closed positions",
    description:
      'Closed positions, newest first by id. `window` says where only so many positions of all agents were looked at.',
    params: agentParams,
    query: z.object({
      limit: z.coerce.number<string | number>().int().min(1).max(100).default(50).meta({
        description: 'How many positions at most',
      }),
      cursor: closedCursor.optional(),
    }),
    status: 200,
    output: closedPositionList,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config, history }, { agentId, limit, cursor }) => {
    if (config.executorKeys.length === 0) throw refuse('EXECUTOR_NOT_CONFIGURED')
    const found = await history.closedPositions(trading, { agentId, limit, below: cursor }).catch(unlessUnavailable)
    const whole = found && (found.lagBlocks === 0 || cursor !== undefined) ? found : undefined
    const recent = whole ?? (await recentlyClosed(trading, agentId, limit, cursor))
    // Where the newest of all agents are none of this one's, an index that is behind still knows its older ones.
    const isRecent = whole === undefined && (found === undefined || recent.positions.length > 0)
    const { positions, next, asOf, lagBlocks } = isRecent ? recent : (found ?? recent)
    const symbol = await symbolsOf(
      trading,
      positions.map(({ token }) => token),
    )
    return {
      agentId: `${agentId}`,
      positions: positions.map(position => presentPosition(position, symbol(position.token))),
      nextCursor: next === undefined ? null : presentClosedCursor(next),
      window: isRecent ? SCAN_WINDOW : null,
      asOf: presentBlock(asOf),
      lagBlocks,
    }
  },
)

/** Without an index that is near the head: the newest positions of all agents, in which further pages have no end. */
async function recentlyClosed(trading: TradingChain, agentId: bigint, limit: number, below: bigint | undefined) {
  if (below !== undefined) throw refuse('HISTORY_UNAVAILABLE')
  const { block, positions } = await getRecentClosedPositions(trading, agentId, limit)
  const last = positions.at(-1)
  return { positions, next: last?.positionId, asOf: block, lagBlocks: 0 }
}

export const getPosition = defineOperation(
  {
    id: 'getPosition',
    tool: 'svc_get_agent_position',
    method: 'get',
    path: '/agents/{agentId}/positions/{positionId}',
    tag: 'Positions',
    summary: 'One position of an agent',
    description: 'An open or closed position with its ladder and its realized and unrealized PnL.',
    params: z.object({ agentId, positionId }),
    status: 200,
    output: positionAnswer,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, history }, { agentId, positionId }) => {
    const { block, position } = await readPosition(trading, agentId, positionId)
    const isClosed = position.status !== 0
    const investedUsdc = isClosed ? await history.invested(trading, { agentId, positionId }, block) : undefined
    const symbol = await symbolsOf(trading, [position.token])
    return {
      agentId: `${agentId}`,
      position: presentPosition(
        { ...position, ...(investedUsdc !== undefined && { investedUsdc }) },
        symbol(position.token),
      ),
      asOf: presentBlock(block),
    }
  },
)
