import type { Address } from 'viem'
import { getAgent as readAgent } from '../chain/agents.ts'
import type { Chain } from '../chain/chain.ts'
import { readMarket } from '../chain/listings.ts'
import {
  agentAnswer,
  agentList,
  agentParams,
  agentQuery,
  presentAgent,
  presentAgentCursor,
} from '../resources/agent.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { findVault } from './vaults.ts'

export const listAgents = defineOperation(
  {
    id: 'listAgents',
    tool: 'svc_list_agents',
    method: 'get',
    path: '/agents',
    tag: 'Agents',
    summary: 'List the agents',
    description:
      'Agents, newest first, as the registry holds them now; `vault`, `track` and `status` leave only what they name. `cursor` goes on where a page ended; a short page may have a next one.',
    query: agentQuery,
    status: 200,
    output: agentList,
    errors: [400, 404, 500, 502, 503],
  },
  async ({ chain, history }, { vault: id, cursor, ...filter }) => {
    const vault = id === undefined ? undefined : await vaultAt(chain, id)
    const { agents, next, asOf, lagBlocks } = await history.agents({ ...filter, vault, below: cursor })
    return {
      chainId: chain.id,
      agents: agents.map(({ agentId, agent }) => ({ agentId: `${agentId}`, agent: presentAgent(agent) })),
      nextCursor: next === undefined ? null : presentAgentCursor(next),
      asOf: presentBlock(asOf),
      lagBlocks,
    }
  },
)

/** The address of a vault by slug or address. Throws VAULT_NOT_FOUND. */
async function vaultAt(chain: Chain, id: string): Promise<Address> {
  const { market } = await readMarket(chain)
  return findVault(market, id).address
}

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
