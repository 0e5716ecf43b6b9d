import { z } from 'zod'
import {
  getClosedPositions as readClosed,
  getOpenPositions as readOpen,
  getPosition as readPosition,
} from '../chain/positions.ts'
import { symbolsOf } from '../chain/symbols.ts'
import { refuse } from '../errors.ts'
import { agentParams } from '../resources/agent.ts'
import { positionAnswer, positionList, presentPosition } from '../resources/position.ts'
import { agentId, positionId } from '../resources/primitives.ts'
import { defineOperation } from './operation.ts'
import { presentBlock } from './quoting.ts'

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
    description: 'Closed positions, newest first, among the newest 500 positions of all agents.',
    params: agentParams,
    query: z.object({
      limit: z.coerce.number<string | number>().int().min(1).max(100).default(50).meta({
        description: 'How many positions at most',
      }),
    }),
    status: 200,
    output: positionList,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config }, { agentId, limit }) => {
    if (config.executorKeys.length === 0) throw refuse('EXECUTOR_NOT_CONFIGURED')
    const { block, positions } = await readClosed(trading, agentId, limit)
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
  async ({ trading }, { agentId, positionId }) => {
    const { block, position } = await readPosition(trading, agentId, positionId)
    const symbol = await symbolsOf(trading, [position.token])
    return {
      agentId: `${agentId}`,
      position: presentPosition(position, symbol(position.token)),
      asOf: presentBlock(block),
    }
  },
)
