import type { Address } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { refuse } from '../errors/refuse.ts'
import { type AgentRecord, existing, foundAgent } from './agent-record.ts'
import { callReader } from './call-service-reader.ts'
import type { Block, Chain } from './configured-chain.ts'
import { agentRegistry } from './contracts.ts'
import { type CallResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { call, optional, readTree, type ValuesOf } from './read-tree.ts'

/** An agent, and whether its owner holds the linked ERC-8004 identity at that block. */
export type Agent = AgentRecord & { erc8004OwnerCurrent: boolean }

/** The call that reads an agent's record; `existing` removes an empty one. */
export const agentRecordCall = (chain: Chain, agentId: bigint) =>
  optional(call(agentRegistry(chain), 'getAgent', [agentId]))

const agentCalls = (chain: Chain, agentId: bigint) => ({
  record: agentRecordCall(chain, agentId),
  isOwnerCurrent: optional(call(agentRegistry(chain), 'isERC8004OwnerCurrent', [agentId])),
})

type AgentValues = ValuesOf<ReturnType<typeof agentCalls>>

function toAgent(values: AgentValues): Agent | undefined {
  const agent = existing(values.record)
  return agent && { ...agent, erc8004OwnerCurrent: agent.hasERC8004Identity && values.isOwnerCurrent === true }
}

/** Returns the agent in the service reader's results, or undefined if it does not exist. */
export const decodeAgent = (results: Record<keyof AgentValues, CallResult>): Agent | undefined =>
  toAgent({
    record: tryDecodeResult(agentRegistryAbi, 'getAgent', results.record),
    isOwnerCurrent: tryDecodeResult(agentRegistryAbi, 'isERC8004OwnerCurrent', results.isOwnerCurrent),
  })

/** Reads an agent. Throws AGENT_NOT_FOUND. */
export async function getAgent(chain: Chain, agentId: bigint): Promise<{ block: Block; agent: Agent }> {
  const { block, values } = await readTree(chain, agentCalls(chain, agentId))
  return { block, agent: foundAgent(toAgent(values), agentId) }
}

/** Reads the agent that is linked to an ERC-8004 identity. Throws NO_AGENT_FOR_ERC8004. */
export async function getAgentByERC8004(
  chain: Chain,
  erc8004AgentId: bigint,
): Promise<{ block: Block; agentId: bigint; agent: Agent }> {
  const { block, values } = await callReader(chain, 'agentByERC8004', erc8004AgentId)
  const { agentId } = values
  const agent = decodeAgent(values.agent)
  if (agent === undefined) throw refuse('NO_AGENT_FOR_ERC8004', { erc8004AgentId })
  return { block, agentId, agent }
}

/** More agents fit into one call's gas only if their metadata is short. */
const MAX_AGENTS_PER_CALL = 200

type AgentWithId = { agentId: bigint; agent: Agent }

/** Reads agents at one block, by default the newest. Ids that do not exist are left out. */
export async function getAgents(
  chain: Chain,
  agentIds: readonly bigint[],
  at?: Block,
): Promise<{ block: Block; agents: AgentWithId[] }> {
  const { block, agents } = await readAgentsPage(chain, agentIds.slice(0, MAX_AGENTS_PER_CALL), at)
  for (let from = MAX_AGENTS_PER_CALL; from < agentIds.length; from += MAX_AGENTS_PER_CALL) {
    const page = await readAgentsPage(chain, agentIds.slice(from, from + MAX_AGENTS_PER_CALL), block)
    agents.push(...page.agents)
  }
  return { block, agents }
}

/** Returns the names of agents by id. Throws CHAIN_UNREACHABLE. */
export async function getAgentNames(
  chain: Chain,
  agentIds: readonly (bigint | number | string)[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(agentIds.map(String))]
  const { agents } = ids.length === 0 ? { agents: [] } : await getAgents(chain, ids.map(BigInt))
  return new Map(agents.map(({ agentId, agent }) => [`${agentId}`, agent.name]))
}

async function readAgentsPage(chain: Chain, agentIds: readonly bigint[], at?: Block) {
  const { block, values } = await readTree(
    chain,
    agentIds.map(agentId => ({ agentId, ...agentCalls(chain, agentId) })),
    at,
  )
  const agents = values.flatMap(({ agentId, ...calls }): AgentWithId[] => {
    const agent = toAgent(calls)
    return agent === undefined ? [] : [{ agentId, agent }]
  })
  return { block, agents }
}

/** Returns whether the agent's owner holds the identity that the agent is linked to. */
export const isLinked = ({ hasERC8004Identity, erc8004OwnerCurrent }: Agent): boolean =>
  hasERC8004Identity && erc8004OwnerCurrent

/** Reads the address of the identity registry that agents are linked to. Throws CHAIN_UNREACHABLE. */
export async function readIdentityRegistry(chain: Chain): Promise<Address> {
  const { values } = await readTree(chain, call(agentRegistry(chain), 'erc8004IdentityRegistry', []))
  return values
}
