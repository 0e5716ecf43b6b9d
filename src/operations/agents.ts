import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { getAgent as readAgent, getAgentByERC8004 as readAgentByERC8004 } from '../chain/agents.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { vaultAddress } from '../chain/find-vault.ts'
import type { HistoryContext } from '../history/client.ts'
import {
  agentList,
  agentQuery,
  agentResponse,
  listedAgent,
  ownerParams,
  presentAgentCursor,
  presentListed,
} from '../resources/agent.ts'
import { addressOut, asOf, erc8004AgentId, lagBlocks, presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const listAgents = defineOperation(
  {
    id: 'listAgents',
    tool: {
      name: 'svc_list_agents',
      description:
        'Lists agents, newest first, by vault, track or status. Example: {"vault":"genesis","status":"Active"}',
    },
    path: '/agents',
    tag: 'Agents',
    summary: 'List agents',
    description:
      'Returns agents with their current records, newest first. `vault`, `track` and `status` filter the list. `cursor` continues a previous page; a page may be short and still have a next one.',
    query: agentQuery,
    output: agentList,
  },
  async ({ chain, history }: HistoryContext, { vault: id, cursor, ...filter }) => {
    const vault = id === undefined ? undefined : await vaultAddress(chain, id)
    const { agents, next, asOf, lagBlocks } = await history.agents({ ...filter, vault, below: cursor })
    return {
      chainId: chain.id,
      agents: agents.map(presentListed),
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
      card: 'agent',
      description:
        'Returns the record of an agent: owner, signer, vault, track and status; only status 1 (Active) may take new risk. Example: {"agentId":"1"}',
    },
    path: '/agents/{agentId}',
    tag: 'Agents',
    summary: 'Get an agent',
    description: "Returns the agent's record in the registry: owner, signer, vault, track and status.",
    cache: 'isolate',
    output: agentResponse,
    errors: [404, 502],
  },
  async ({ chain }, { agentId }) => {
    const { block, agent } = await readAgent(chain, agentId)
    return presentAnswer(chain, block, { agentId, agent })
  },
)

export const listAgentsByOwner = defineOperation(
  {
    id: 'listAgentsByOwner',
    tool: {
      name: 'svc_list_agents_by_owner',
      description:
        'Lists the agents an address currently owns, with the agentId that other tools take. `given` are agents that others transferred to it without its consent. Example: {"owner":"0x…"}',
    },
    path: '/agents/by-owner/{owner}',
    tag: 'Agents',
    summary: 'List the agents of an owner',
    description:
      'Returns the agents that an address currently owns: that it registered, accepted, or has sent a message for. Agents it has transferred away are not included. Anyone can transfer an agent to any address: such agents are in `given`, the newest 20, until their owner does something with them.',
    params: ownerParams,
    output: z
      .object({
        owner: addressOut,
        agentRegistry: addressOut,
        count: z.int(),
        agents: z.array(listedAgent),
        given: z
          .array(listedAgent)
          .describe('Agents that others transferred to the owner, which it has neither accepted nor used'),
        hasMoreGiven: z.boolean(),
        asOf,
        lagBlocks,
      })
      .meta({ id: 'AgentsOfOwner' }),
    errors: [502, 503],
  },
  async ({ chain, history }: HistoryContext, { owner }, call) => {
    const { agents, given, hasMoreGiven, asOf, lagBlocks, rowsRead } = await history.agentsByOwner(owner)
    await chargeRowsRead(call, rowsRead)
    return {
      owner,
      agentRegistry: chain.contracts.AgentRegistry,
      count: agents.length,
      agents: agents.map(presentListed),
      given: given.map(presentListed),
      hasMoreGiven,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

const MAX_FOUND = 20

export const listAgentsByName = defineOperation(
  {
    id: 'listAgentsByName',
    path: '/agents/by-name/{name}',
    tag: 'Agents',
    summary: 'Find agents by name',
    description: `Returns at most ${MAX_FOUND} agents whose name has a word that begins with the text, in the order of these words. Case and punctuation do not matter; further words of the text must follow in the name.`,
    params: z.object({
      name: z
        .string()
        .max(64)
        .refine(text => /[\p{L}\p{N}]/u.test(text), 'has neither a letter nor a digit')
        .meta({ description: 'The beginning of a word of the name', example: 'momen' }),
    }),
    output: z.object({ agents: z.array(listedAgent), asOf, lagBlocks }).meta({ id: 'AgentsByName' }),
    errors: [502, 503],
  },
  async ({ history }: HistoryContext, { name }) => {
    const { agents, asOf, lagBlocks } = await history.agentsByName(name, MAX_FOUND)
    return {
      agents: agents.map(presentListed),
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

export const getAgentByERC8004 = defineOperation(
  {
    id: 'getAgentByErc8004',
    tool: {
      name: 'svc_get_agent_by_erc8004',
      description:
        'Returns the agent linked to an ERC-8004 identity token; erc8004OwnerCurrent tells whether its owner still holds the token. Example: {"erc8004AgentId":"7"}',
    },
    path: '/agents/by-erc8004/{erc8004AgentId}',
    tag: 'Agents',
    summary: 'Get the agent of an ERC-8004 identity',
    description:
      'Returns the agent that an identity token is linked to. `erc8004OwnerCurrent` of the record tells whether its owner still holds the token.',
    params: z.object({ erc8004AgentId }),
    cache: 'etag',
    output: agentResponse,
    errors: [404, 502],
  },
  async ({ chain }, { erc8004AgentId }) => {
    const { block, ...found } = await readAgentByERC8004(chain, erc8004AgentId)
    return presentAnswer(chain, block, found)
  },
)

const presentAnswer = (chain: Chain, block: Block, found: Parameters<typeof presentListed>[0]) => ({
  ...presentListed(found),
  agentRegistry: chain.contracts.AgentRegistry,
  asOf: presentAsOf(block),
})
