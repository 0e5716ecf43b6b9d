import { z } from 'zod'
import { readWatch } from '../chain/exit-execution.ts'
import { getPosition } from '../chain/positions.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { refuse } from '../errors/catalogue.ts'
import { automation, presentAutomation } from '../resources/automation.ts'
import { agentId, positionId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const getPositionAutomation = defineOperation(
  {
    id: 'getPositionAutomation',
    tool: 'svc_get_position_automation',
    method: 'get',
    path: '/agents/{agentId}/positions/{positionId}/automation',
    tag: 'Positions',
    summary: 'What fires the exits of a position, and why they have not fired',
    description:
      'For each pending rule the price that fires it, how far away that is, what it would sell and for how much at least; and what the keeper, which fires exits on its own, saw and did last.',
    params: z.object({ agentId, positionId }),
    status: 200,
    output: automation,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, keeper }, { agentId, positionId }) => {
    const [{ block, positions, marketOf }, watched] = await Promise.all([
      readWatch(trading, [positionId]),
      keeper?.find(positionId),
    ])
    const [position] = positions
    if (position?.agentId !== agentId) {
      await getPosition(trading, agentId, positionId) // knows which of the two there is not
      throw refuse('POSITION_NOT_FOUND', { agentId, positionId })
    }
    const symbol = (await symbolsOf(trading, [position.token]))(position.token)
    return {
      ...presentAutomation({ position, symbol, market: marketOf(position), watched }),
      keeperEnabled: keeper !== undefined,
      asOf: presentBlock(block),
    }
  },
)
