import type { Address, Hex } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { refuse } from '../errors/catalogue.ts'
import { type Domain, domainAbi, toDomain } from '../protocol/typed-data.ts'
import { type Block, type Chain, must, read } from './chain.ts'
import { type Answer, type Outcome, outcomeOf } from './multicall.ts'
import { askReader } from './service-reader.ts'

/** An agent as the registry holds it. */
export type AgentRecord = {
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
}

/** An agent, and whether its owner holds the linked ERC-8004 identity at that block. */
export type Agent = AgentRecord & { erc8004OwnerCurrent: boolean }

const registry = ({ contracts }: Chain) => ({ address: contracts.AgentRegistry, abi: agentRegistryAbi }) as const

/** The calls that read one agent; `toAgent` puts their results together. */
export const agentCalls = (chain: Chain, agentId: bigint) =>
  [
    { ...registry(chain), functionName: 'getAgent', args: [agentId] },
    { ...registry(chain), functionName: 'isERC8004OwnerCurrent', args: [agentId] },
  ] as const

/** The record of an agent, or undefined when there is none: the call reverted or the record is empty. */
export const toRecord = (record: Outcome<AgentRecord>): AgentRecord | undefined =>
  record.status === 'failure' || record.result.createdAt === 0n ? undefined : record.result

/** The agent, or undefined when there is none. */
export function toAgent(record: Outcome<AgentRecord>, isOwnerCurrent: Outcome<boolean>): Agent | undefined {
  const agent = toRecord(record)
  return agent && { ...agent, erc8004OwnerCurrent: agent.hasERC8004Identity && isOwnerCurrent.result === true }
}

/** The agent that the registry answered the reader, or undefined when there is none. */
export const agentOf = ({ record, isOwnerCurrent }: { record: Answer; isOwnerCurrent: Answer }) =>
  toAgent(
    outcomeOf(agentRegistryAbi, 'getAgent', record),
    outcomeOf(agentRegistryAbi, 'isERC8004OwnerCurrent', isOwnerCurrent),
  )

/** Reads one agent. Throws AGENT_NOT_FOUND. */
export async function getAgent(chain: Chain, agentId: bigint): Promise<{ block: Block; agent: Agent }> {
  const { block, results } = await read(chain, agentCalls(chain, agentId))
  const agent = toAgent(results[0], results[1])
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  return { block, agent }
}

/** Reads the agent that is linked to an ERC-8004 identity. Throws NO_AGENT_FOR_ERC8004. */
export async function getAgentByERC8004(chain: Chain, erc8004AgentId: bigint) {
  const { block, answers } = await askReader(chain, 'agentByERC8004', erc8004AgentId)
  const [agentId, record] = answers
  const agent = agentOf(record)
  if (agent === undefined) throw refuse('NO_AGENT_FOR_ERC8004', { erc8004AgentId })
  return { block, agentId, agent }
}

/** More fit into one call's gas only when their metadata is short. */
const AGENTS_PER_READ = 200

/** Reads agents at one block; a further page of them asks the node for the first one's block. */
export async function getAgents(chain: Chain, ids: readonly bigint[]) {
  const first = await getPage(chain, ids.slice(0, AGENTS_PER_READ))
  const agents = first.agents
  for (let from = AGENTS_PER_READ; from < ids.length; from += AGENTS_PER_READ)
    agents.push(...(await getPage(chain, ids.slice(from, from + AGENTS_PER_READ), first.block)).agents)
  return { block: first.block, agents }
}

async function getPage(chain: Chain, ids: readonly bigint[], at?: Block) {
  const { block, results } = await read(
    chain,
    ids.flatMap(id => agentCalls(chain, id)),
    at,
  )
  const agents = ids.flatMap((agentId, index) => {
    const agent = toAgent(results[2 * index] as never, results[2 * index + 1] as never)
    return agent === undefined ? [] : [{ agentId, agent }]
  })
  return { block, agents }
}

/** What a link of an ERC-8004 identity must match: the agent, its owner's nonce, the domain. */
export type LinkTerms = { agent: Agent; domain: Domain; ownerNonce: bigint; identityRegistry: Address }

/** Reads the terms of an identity link. Throws AGENT_NOT_FOUND. */
export async function getLinkTerms(chain: Chain, agentId: bigint): Promise<{ block: Block; terms: LinkTerms }> {
  const { block, answers } = await askReader(chain, 'linkTerms', agentId)
  const [record, domain, ownerNonce, identityRegistry] = answers
  const agent = agentOf(record)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  return {
    block,
    terms: {
      agent,
      domain: toDomain(must(outcomeOf(domainAbi, 'eip712Domain', domain))),
      ownerNonce: must(outcomeOf(agentRegistryAbi, 'nonces', ownerNonce)),
      identityRegistry: must(outcomeOf(agentRegistryAbi, 'erc8004IdentityRegistry', identityRegistry)),
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
