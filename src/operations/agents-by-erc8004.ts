import { z } from 'zod'
import { getAgentByERC8004 as readAgent } from '../chain/agents.ts'
import { agentAnswer, presentAgent } from '../resources/agent.ts'
import { erc8004AgentId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const getAgentByERC8004 = defineOperation(
  {
    id: 'getAgentByErc8004',
    tool: 'svc_get_agent_by_erc8004',
    method: 'get',
    path: '/agents/by-erc8004/{erc8004AgentId}',
    tag: 'Agents',
    summary: 'Get the agent of an ERC-8004 identity',
    description:
      "The agent that an identity token is linked to. The record's erc8004OwnerCurrent says whether its owner still holds the token.",
    params: z.object({ erc8004AgentId }),
    status: 200,
    output: agentAnswer,
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { erc8004AgentId }) => {
    const { block, agentId, agent } = await readAgent(chain, erc8004AgentId)
    return {
      agentId: `${agentId}`,
      agent: presentAgent(agent),
      agentRegistry: chain.contracts.AgentRegistry,
      asOf: presentBlock(block),
    }
  },
)
