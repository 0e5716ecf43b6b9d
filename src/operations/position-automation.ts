import { z } from 'zod'

import { getPositionTerms } from '../chain/read-intent-terms.ts'
import { automation, presentAutomation } from '../resources/position-automation.ts'
import { agentId, positionId, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

/** Terms of a sale, which take one quote of the venue; those of a purchase take many. */
const FULL_EXIT_BPS = 10_000

export const getPositionAutomation = defineOperation(
  {
    id: 'getPositionAutomation',
    tool: {
      name: 'svc_get_position_automation',
      description:
        'Returns what fires each exit rule of a position and what the keeper last saw. Example: {"agentId":"1","positionId":"3"}',
    },
    method: 'get',
    path: '/agents/{agentId}/positions/{positionId}/automation',
    tag: 'Positions',
    summary: 'Get the exit automation of a position',
    description:
      "Returns, for each pending exit rule, the trigger price, the distance to it, and what the rule would sell for at least; and what the keeper, which fires exits, last saw and did. While the agent's owner closes all positions, `ownerClose` says since when and the floor of the sale, and `lastOutcome` why the position is not sold yet.",
    params: z.object({ agentId, positionId }),
    cache: 'none',
    status: 200,
    output: automation,
    errors: [404, 502, 503],
  },
  async ({ trading, keeper }, { agentId, positionId }) => {
    const [{ block, terms }, watched] = await Promise.all([
      getPositionTerms(trading, agentId, { positionId, exitBps: FULL_EXIT_BPS }),
      keeper?.find(positionId),
    ])
    const { position, token, vault, dueExit, exitState, extension } = terms
    return {
      ...presentAutomation({
        position: { ...position, dueExit, closingSince: extension?.mandate?.closingSince ?? 0n },
        symbol: token.symbol,
        market: { quote: token.quote, decimals: token.decimals, tradingPaused: vault.tradingPaused },
        extension,
        exitState,
        watched,
      }),
      keeperEnabled: keeper !== undefined,
      asOf: presentAsOf(block),
    }
  },
)
