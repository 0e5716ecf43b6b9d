import { z } from 'zod'

import { getPosition } from '../chain/positions.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { readWatchedPositions } from '../chain/watched-positions.ts'
import { refuse } from '../errors/catalogue.ts'
import { automation, presentAutomation } from '../resources/position-automation.ts'
import { agentId, positionId, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getPositionAutomation = defineOperation(
  {
    id: 'getPositionAutomation',
    tool: {
      name: 'svc_get_position_automation',
      description:
        'Returns what fires each exit rule of a position, how far that is, and what the keeper last saw. Use it when an expected exit did not happen. Example: {"agentId":"1","positionId":"3"}',
    },
    method: 'get',
    path: '/agents/{agentId}/positions/{positionId}/automation',
    tag: 'Positions',
    summary: 'Get the exit automation of a position',
    description:
      'Returns, for each pending exit rule, the trigger price, the distance to it, and what the rule would sell for at least; and what the keeper, which fires exits, last saw and did.',
    params: z.object({ agentId, positionId }),
    cache: 'none',
    status: 200,
    output: automation,
    errors: [404, 502, 503],
  },
  async ({ trading, keeper }, { agentId, positionId }) => {
    const [{ block, positions, marketOf }, watched] = await Promise.all([
      readWatchedPositions(trading, [positionId]),
      keeper?.find(positionId),
    ])
    const [position] = positions
    if (position?.agentId !== agentId) {
      await getPosition(trading, agentId, positionId) // throws AGENT_NOT_FOUND or POSITION_NOT_FOUND, whichever applies
      throw refuse('POSITION_NOT_FOUND', { agentId, positionId })
    }
    const symbol = (await symbolsOf(trading, [position.token]))(position.token)
    return {
      ...presentAutomation({ position, symbol, market: marketOf(position), watched }),
      keeperEnabled: keeper !== undefined,
      asOf: presentAsOf(block),
    }
  },
)
