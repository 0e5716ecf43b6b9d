import { getAgent as readAgent } from '../chain/registry.ts'
import { agentAnswer, agentParams, presentAgent } from '../resources/agent.ts'
import { defineOperation } from './operation.ts'
import { presentBlock } from './quoting.ts'

export const getAgent = defineOperation(
  {
    id: 'getAgent',
    tool: 'svc_get_agent',
    method: 'get',
    path: '/agents/{agentId}',
    tag: 'Agents',
    summary: 'Get an agent',
    description: "The agent's record in the registry: owner, signer, vault, track and status.",
    params: agentParams,
    remembered: true,
    status: 200,
    output: agentAnswer,
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { agentId }) => {
    const { block, agent } = await readAgent(chain, agentId)
    return {
      agentId: `${agentId}`,
      agent: presentAgent(agent),
      agentRegistry: chain.contracts.AgentRegistry,
      asOf: presentBlock(block),
    }
  },
)
