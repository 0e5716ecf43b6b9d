import { z } from 'zod'
import { getAgentByERC8004 as readAgent } from '../chain/agents.ts'
import { agentResponse, presentAgent } from '../resources/agent.ts'
import { erc8004AgentId, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getAgentByERC8004 = defineOperation(
  {
    id: 'getAgentByErc8004',
    tool: {
      name: 'svc_get_agent_by_erc8004',
      description:
        'Returns the agent linked to an ERC-8004 identity token; erc8004OwnerCurrent tells whether its owner still holds the token. Example: {"erc8004AgentId":"7"}',
    },
    method: 'get',
    path: '/agents/by-erc8004/{erc8004AgentId}',
    tag: 'Agents',
    summary: 'Get the agent of an ERC-8004 identity',
    description:
      'Returns the agent that an identity token is linked to. `erc8004OwnerCurrent` of the record tells whether its owner still holds the token.',
    params: z.object({ erc8004AgentId }),
    cache: 'etag',
    status: 200,
    output: agentResponse,
    errors: [404, 502],
  },
  async ({ chain }, { erc8004AgentId }) => {
    const { block, agentId, agent } = await readAgent(chain, erc8004AgentId)
    return {
      agentId: `${agentId}`,
      agent: presentAgent(agent),
      agentRegistry: chain.contracts.AgentRegistry,
      asOf: presentAsOf(block),
    }
  },
)
