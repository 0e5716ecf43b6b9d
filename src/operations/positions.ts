import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import {
  getRecentClosedPositions,
  getOpenPositions as readOpen,
  getPosition as readPosition,
  SCAN_WINDOW,
} from '../chain/positions.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { undefinedIfUnavailable } from '../history/read-snapshot.ts'
import type { ClosedPositionQuery } from '../history/read-trades.ts'
import {
  closedCursor,
  closedPositionList,
  positionList,
  positionResponse,
  presentClosedCursor,
  presentPosition,
} from '../resources/position.ts'
import { pageLimit, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const listPositions = defineOperation(
  {
    id: 'listPositions',
    tool: {
      name: 'svc_get_agent_positions',
      description:
        'Lists the open positions of an agent with ladders and PnL; add, reduce and ladder quotes take the positionId. Example: {"agentId":"1"}',
    },
    resource: {
      uri: 'svc://agents/{agentId}/positions',
      name: 'positions',
      title: 'Open positions of an agent',
      description:
        'The output of svc_get_agent_positions. Subscribe to be notified when the positions change, whoever changes them.',
    },
    path: '/agents/{agentId}/positions',
    tag: 'Positions',
    summary: 'List open positions',
    description: "Returns an agent's open positions with their exit ladders and mark-to-market PnL.",
    cache: 'etag',
    output: positionList,
  },
  async ({ trading }, { agentId }) => {
    const { block, positions } = await readOpen(trading, agentId)
    const symbolOf = await symbolsOf(trading, positions)
    return {
      agentId: `${agentId}`,
      positions: positions.map(position => presentPosition(position, symbolOf(position.token))),
      asOf: presentAsOf(block),
    }
  },
)

export const listClosedPositions = defineOperation(
  {
    id: 'listClosedPositions',
    tool: {
      name: 'svc_list_closed_positions',
      description: 'Lists the closed positions of an agent, newest first. Example: {"agentId":"1","limit":10}',
    },
    path: '/agents/{agentId}/closed-positions',
    tag: 'Positions',
    summary: 'List closed positions',
    description:
      "Returns an agent's closed positions, newest first by id. While the index is being built, only the newest positions of all agents are scanned; `window` tells how many.",
    query: z.object({
      limit: pageLimit.describe('Maximum number of positions'),
      cursor: closedCursor.optional(),
    }),
    output: closedPositionList,
  },
  async ({ trading, config, history }: HistoryContext, { agentId, limit, cursor }, call) => {
    if (config.executorKeys.length === 0) throw refuse('EXECUTOR_NOT_CONFIGURED')
    const query = { agentId, limit, below: cursor }
    const { positions, next, window, asOf, lagBlocks, rowsRead } = await readClosedPositions(
      { trading, history },
      query,
    )
    await chargeRowsRead(call, rowsRead)
    const symbolOf = await symbolsOf(trading, positions)
    return {
      agentId: `${agentId}`,
      positions: positions.map(position => presentPosition(position, symbolOf(position.token))),
      nextCursor: next === undefined ? null : presentClosedCursor(next),
      window,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

/**
 * Reads closed positions from the index. If it is behind or unavailable, the first page comes from a scan of the newest
 * positions of all agents instead. Throws HISTORY_UNAVAILABLE if neither can serve the page.
 */
async function readClosedPositions(
  { trading, history }: Pick<HistoryContext, 'trading' | 'history'>,
  query: ClosedPositionQuery,
) {
  const indexed = await history.closedPositions(trading, query).catch(undefinedIfUnavailable)
  if (indexed && (indexed.lagBlocks === 0 || query.below !== undefined)) return { ...indexed, window: null }
  if (query.below !== undefined) throw refuse('HISTORY_UNAVAILABLE')
  const { block, positions } = await getRecentClosedPositions(trading, query.agentId, query.limit)
  // The scan reaches only so far back: an index that is behind may have older positions.
  if (indexed && positions.length === 0) return { ...indexed, window: null }
  return { positions, next: positions.at(-1)?.positionId, asOf: block, lagBlocks: 0, rowsRead: 0, window: SCAN_WINDOW }
}

export const getPosition = defineOperation(
  {
    id: 'getPosition',
    tool: {
      name: 'svc_get_agent_position',
      description:
        'Returns one position, open or closed, with its ladder and its realized and unrealized PnL. Example: {"agentId":"1","positionId":"3"}',
    },
    path: '/agents/{agentId}/positions/{positionId}',
    tag: 'Positions',
    summary: 'Get a position',
    description: 'Returns an open or closed position with its exit ladder and its realized and unrealized PnL.',
    cache: 'etag',
    output: positionResponse,
  },
  async ({ trading, history }: HistoryContext, { agentId, positionId }, call) => {
    const { block, position } = await readPosition(trading, agentId, positionId)
    const isClosed = position.status !== PositionStatus.Open
    const indexed = isClosed ? await history.positionLife(position, block) : undefined
    await chargeRowsRead(call, indexed?.rowsRead ?? 0)
    const symbolOf = await symbolsOf(trading, [position.token])
    return {
      agentId: `${agentId}`,
      position: presentPosition({ ...position, life: indexed?.life }, symbolOf(position.token)),
      asOf: presentAsOf(block),
    }
  },
)
