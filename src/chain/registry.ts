import { type Address, type Hex, pad, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { refuse } from '../errors.ts'
import { type Block, type Chain, maybe, must, read } from './client.ts'
import { getLogs } from './logs.ts'
import { type Domain, domainAbi, toDomain } from './typed-data.ts'

/** An agent as the registry holds it, and whether its owner holds the linked ERC-8004 identity at that block. */
export type Agent = {
  owner: Address
  signer: Address
  payoutRecipient: Address
  vault: Address
  track: number
  status: number
  name: string
  metadataURI: string
  createdAt: bigint
  hasERC8004Identity: boolean
  erc8004AgentId: bigint
  erc8004OwnerCurrent: boolean
}

const registry = ({ contracts }: Chain) => ({ address: contracts.AgentRegistry, abi: agentRegistryAbi }) as const

/** The calls that read one agent; `toAgent` puts their results together. */
export const agentCalls = (chain: Chain, agentId: bigint) =>
  [
    { ...registry(chain), functionName: 'getAgent', args: [agentId] },
    { ...registry(chain), functionName: 'isERC8004OwnerCurrent', args: [agentId] },
  ] as const

type Outcome<T> = { status: 'success'; result: T } | { status: 'failure'; error: Error; result?: undefined }

/** The agent, or undefined when there is none: the call reverted or the record is empty. */
export function toAgent(
  agent: Outcome<Omit<Agent, 'erc8004OwnerCurrent'>>,
  isOwnerCurrent: Outcome<boolean>,
): Agent | undefined {
  if (agent.status === 'failure' || agent.result.createdAt === 0n) return undefined
  const { result } = agent
  return { ...result, erc8004OwnerCurrent: result.hasERC8004Identity && isOwnerCurrent.result === true }
}

/** Reads one agent. Throws AGENT_NOT_FOUND. */
export async function getAgent(chain: Chain, agentId: bigint): Promise<{ block: Block; agent: Agent }> {
  const { block, results } = await read(chain, agentCalls(chain, agentId))
  const agent = toAgent(results[0], results[1])
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  return { block, agent }
}

/** Reads the agent that is linked to an ERC-8004 identity. Throws NO_AGENT_FOR_ERC8004. */
export async function getAgentByERC8004(chain: Chain, erc8004AgentId: bigint) {
  const { block, results } = await read(chain, [
    { ...registry(chain), functionName: 'agentIdByERC8004', args: [erc8004AgentId] },
  ] as const)
  const agentId = maybe(results[0]) ?? 0n
  if (agentId === 0n) throw refuse('NO_AGENT_FOR_ERC8004', { erc8004AgentId: `${erc8004AgentId}` })
  const agents = await getAgents(chain, [agentId], block)
  const agent = agents.get(agentId)
  if (agent === undefined) throw refuse('NO_AGENT_FOR_ERC8004', { erc8004AgentId: `${erc8004AgentId}` })
  return { block, agentId, agent }
}

/** Reads several agents at one block; ids without an agent are absent from the map. */
export async function getAgents(chain: Chain, agentIds: readonly bigint[], at?: Block): Promise<Map<bigint, Agent>> {
  const { results } = await read(
    chain,
    agentIds.flatMap(id => agentCalls(chain, id)),
    at,
  )
  const agents = new Map<bigint, Agent>()
  for (const [index, id] of agentIds.entries()) {
    const agent = toAgent(results[2 * index] as never, results[2 * index + 1] as never)
    if (agent !== undefined) agents.set(id, agent)
  }
  return agents
}

const eventOf = (name: 'AgentRegistered' | 'AgentOwnershipTransferred') =>
  toEventSelector(agentRegistryAbi.find(item => item.type === 'event' && item.name === name) as never)
// Both events carry in their third topic whose the agent is from then on.
const OWNER_EVENTS = [eventOf('AgentRegistered'), eventOf('AgentOwnershipTransferred')]
const AGENTS_PER_READ = 200

/** The agents that an owner holds now, by id: found by the events that ever made it owner, held against the registry. */
export async function getAgentsByOwner(chain: Chain, owner: Address) {
  const { block, results } = await read(chain, [{ ...registry(chain), functionName: 'nextAgentId' }] as const)
  must(results[0])
  const logs = await getLogs(chain, {
    address: chain.contracts.AgentRegistry,
    topics: [OWNER_EVENTS, null, null, pad(owner)],
    fromBlock: chain.startBlock,
    toBlock: block.number,
  })
  const ids = [...new Set(logs.map(({ topics }) => BigInt(topics[1] ?? 0)))].sort((a, b) => (a < b ? -1 : 1))
  const agents: { agentId: bigint; agent: Agent }[] = []
  for (let from = 0; from < ids.length; from += AGENTS_PER_READ) {
    const page = await getAgents(chain, ids.slice(from, from + AGENTS_PER_READ), block)
    for (const [agentId, agent] of page) if (agent.owner === owner) agents.push({ agentId, agent })
  }
  return { block, agents }
}

/** What a link of an ERC-8004 identity must match: the agent, its owner's nonce, the domain. */
export type LinkTerms = { agent: Agent; domain: Domain; ownerNonce: bigint; identityRegistry: Address }

/** Reads the terms of an identity link. Throws AGENT_NOT_FOUND. */
export async function getLinkTerms(chain: Chain, agentId: bigint): Promise<{ block: Block; terms: LinkTerms }> {
  const { agent, block } = await getAgent(chain, agentId)
  const { results } = await read(
    chain,
    [
      { address: chain.contracts.AgentRegistry, abi: domainAbi, functionName: 'eip712Domain' },
      { ...registry(chain), functionName: 'nonces', args: [agent.owner] },
      { ...registry(chain), functionName: 'erc8004IdentityRegistry' },
    ] as const,
    block,
  )
  const [domain, nonce, identityRegistry] = results
  return {
    block,
    terms: {
      agent,
      domain: toDomain(must(domain)),
      ownerNonce: must(nonce),
      identityRegistry: must(identityRegistry),
    },
  }
}

/** What a registration must match: domain, typehash, the signer's nonce, the fee and whether the registry is open. */
export type RegistrationTerms = {
  domain: Domain
  selfRegisterTypehash: Hex
  signerNonce: bigint | undefined
  paused: boolean
  fee: { amount: bigint; asset: Address; treasury: Address; relayer: Address }
}

/** Reads the terms of a registration, with the nonce when a signer is given. */
export async function getRegistrationTerms(
  chain: Chain,
  signer?: Address,
): Promise<{ block: Block; terms: RegistrationTerms }> {
  const fees = { address: chain.contracts.FeeManager, abi: feeManagerAbi } as const
  const { block, results } = await read(chain, [
    { address: chain.contracts.AgentRegistry, abi: domainAbi, functionName: 'eip712Domain' },
    { ...registry(chain), functionName: 'SELF_REGISTER_TYPEHASH' },
    { ...registry(chain), functionName: 'paused' },
    { ...fees, functionName: 'getRegistrationFee' },
    { ...fees, functionName: 'feeAsset' },
    { ...fees, functionName: 'treasury' },
    { ...fees, functionName: 'registrationFeeRelayer' },
    { ...registry(chain), functionName: 'nonces', args: [signer ?? '0x0000000000000000000000000000000000000000'] },
  ] as const)
  const [domain, typehash, paused, amount, asset, treasury, relayer, nonce] = results
  return {
    block,
    terms: {
      domain: toDomain(must(domain)),
      selfRegisterTypehash: must(typehash),
      signerNonce: signer && must(nonce),
      paused: must(paused),
      fee: { amount: must(amount), asset: must(asset), treasury: must(treasury), relayer: must(relayer) },
    },
  }
}
