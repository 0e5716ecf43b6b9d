import { getAgent as readAgent } from '../chain/agents.ts'
import { vaultAddress } from '../chain/find-vault.ts'
import {
  agentList,
  agentParams,
  agentQuery,
  agentResponse,
  presentAgent,
  presentAgentCursor,
} from '../resources/agent.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const listAgents = defineOperation(
  {
    id: 'listAgents',
    tool: {
      name: 'svc_list_agents',
      description:
        'Lists agents, newest first, by vault, track or status. Example: {"vault":"genesis","status":"Active"}',
    },
    method: 'get',
    path: '/agents',
    tag: 'Agents',
    summary: 'List agents',
    description:
      'Returns agents with their current records, newest first. `vault`, `track` and `status` filter the list. `cursor` continues a previous page; a page may be short and still have a next one.',
    query: agentQuery,
    cache: 'none',
    status: 200,
    output: agentList,
    errors: [404, 502, 503],
  },
  async ({ chain, history }, { vault: id, cursor, ...filter }) => {
    const vault = id === undefined ? undefined : await vaultAddress(chain, id)
    const { agents, next, asOf, lagBlocks } = await history.agents({ ...filter, vault, below: cursor })
    return {
      chainId: chain.id,
      agents: agents.map(({ agentId, agent }) => ({ agentId: `${agentId}`, agent: presentAgent(agent) })),
      nextCursor: next === undefined ? null : presentAgentCursor(next),
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

export const getAgent = defineOperation(
  {
    id: 'getAgent',
    tool: {
      name: 'svc_get_agent',
      description:
        'Returns the record of an agent: owner, signer, vault, track and status; only status 1 (Active) may take new risk. Example: {"agentId":"1"}',
    },
    method: 'get',
    path: '/agents/{agentId}',
    tag: 'Agents',
    summary: 'Get an agent',
    description: "Returns the agent's record in the registry: owner, signer, vault, track and status.",
    params: agentParams,
    cache: 'isolate',
    status: 200,
    output: agentResponse,
    errors: [404, 502],
  },
  async ({ chain }, { agentId }) => {
    const { block, agent } = await readAgent(chain, agentId)
    return {
      agentId: `${agentId}`,
      agent: presentAgent(agent),
      agentRegistry: chain.contracts.AgentRegistry,
      asOf: presentAsOf(block),
    }
  },
)
