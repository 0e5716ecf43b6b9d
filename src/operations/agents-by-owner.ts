import { z } from 'zod'
import { agentRecord, ownerParams, presentAgent } from '../resources/agent.ts'
import { addressOut, asOf, digits, lagBlocks, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const listAgentsByOwner = defineOperation(
  {
    id: 'listAgentsByOwner',
    tool: {
      name: 'svc_list_agents_by_owner',
      description:
        'Lists the agents an address currently owns, with the agentId that other tools take. Example: {"owner":"0x…"}',
    },
    method: 'get',
    path: '/agents/by-owner/{owner}',
    tag: 'Agents',
    summary: 'List the agents of an owner',
    description: 'Returns the agents that an address currently owns. Agents it has transferred away are not included.',
    params: ownerParams,
    cache: 'none',
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
    errors: [502, 503],
  },
  async ({ chain, history }, { owner }) => {
    const { agents, asOf, lagBlocks } = await history.agentsByOwner(owner)
    return {
      owner,
      agentRegistry: chain.contracts.AgentRegistry,
      count: agents.length,
      agents: agents.map(({ agentId, agent }) => ({ agentId: `${agentId}`, agent: presentAgent(agent) })),
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)
