import { z } from 'zod'
import { agentRecord, ownerParams, presentAgent } from '../resources/agent.ts'
import { addressOut, asOf, digits, lagBlocks } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const listAgentsByOwner = defineOperation(
  {
    id: 'listAgentsByOwner',
    tool: 'svc_list_agents_by_owner',
    method: 'get',
    path: '/agents/by-owner/{owner}',
    tag: 'Agents',
    summary: 'List the agents of an owner',
    description: 'The agents that an address owns now; one that it gave away is not among them.',
    params: ownerParams,
    status: 200,
    output: z
      .object({
        owner: addressOut,
        agentRegistry: addressOut,
        count: z.int(),
        agents: z.array(z.object({ agentId: digits('Agent id'), agent: agentRecord })),
        asOf,
        lagBlocks,
      })
      .meta({ id: 'AgentsOfOwner' }),
    errors: [400, 500, 502, 503],
  },
  async ({ chain, history }, { owner }) => {
    const { agents, asOf, lagBlocks } = await history.agentsOf(owner)
    return {
      owner,
      agentRegistry: chain.contracts.AgentRegistry,
      count: agents.length,
      agents: agents.map(({ agentId, agent }) => ({ agentId: `${agentId}`, agent: presentAgent(agent) })),
      asOf: presentBlock(asOf),
      lagBlocks,
    }
  },
)
