import { type Domain, domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import type { Address } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { refuse } from '../errors/refuse.ts'
import { type Agent, decodeAgent } from './agents.ts'
import type { Block } from './block-type.ts'
import { callReader } from './call-service-reader.ts'
import type { Chain } from './configured-chain.ts'
import { decodeResult } from './encode-and-decode-call.ts'

/** What an ERC-8004 identity link must match. `ownerNonce` is the next nonce of the agent's owner. */
export type LinkTerms = { agent: Agent; domain: Domain; ownerNonce: bigint; identityRegistry: Address }

/** Reads the terms of an identity link. Throws AGENT_NOT_FOUND. */
export async function getLinkTerms(chain: Chain, agentId: bigint): Promise<{ block: Block; terms: LinkTerms }> {
  const { block, values } = await callReader(chain, 'linkTerms', agentId)
  const [agentResults, domain, ownerNonce, identityRegistry] = values
  const agent = decodeAgent(agentResults)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  return {
    block,
    terms: {
      agent,
      domain: toDomain(decodeResult(domainAbi, 'eip712Domain', domain)),
      ownerNonce: decodeResult(agentRegistryAbi, 'nonces', ownerNonce),
      identityRegistry: decodeResult(agentRegistryAbi, 'erc8004IdentityRegistry', identityRegistry),
    },
  }
}
