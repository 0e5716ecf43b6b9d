import { type Address, type Hex, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { refuse } from '../errors/catalogue.ts'
import { type Domain, domainAbi, toDomain } from '../protocol/typed-data.ts'
import { type Agent, decodeAgent } from './agents.ts'
import type { Block, Chain } from './chain.ts'
import { agentRegistry, eip712Contract, feeManager } from './contracts.ts'
import { decodeResult } from './function-call.ts'
import { call, readTree } from './read-tree.ts'
import { callReader } from './service-reader.ts'

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

/** What a registration must match. `signerNonce` is undefined without a signer; the fee is in base units of its asset. */
export type RegistrationTerms = {
  domain: Domain
  selfRegisterTypehash: Hex
  signerNonce: bigint | undefined
  paused: boolean
  fee: { amount: bigint; asset: Address; treasury: Address; relayer: Address }
}

/** Reads the terms of a registration, with the next nonce of a signer if one is given. */
export async function getRegistrationTerms(
  chain: Chain,
  signer?: Address,
): Promise<{ block: Block; terms: RegistrationTerms }> {
  const registry = agentRegistry(chain)
  const fees = feeManager(chain)
  const { block, values } = await readTree(chain, {
    domain: call(eip712Contract(registry.address), 'eip712Domain', []),
    selfRegisterTypehash: call(registry, 'SELF_REGISTER_TYPEHASH', []),
    paused: call(registry, 'paused', []),
    fee: {
      amount: call(fees, 'getRegistrationFee', []),
      asset: call(fees, 'feeAsset', []),
      treasury: call(fees, 'treasury', []),
      relayer: call(fees, 'registrationFeeRelayer', []),
    },
    nonce: call(registry, 'nonces', [signer ?? zeroAddress]),
  })
  const { domain, nonce, ...terms } = values
  return { block, terms: { ...terms, domain: toDomain(domain), signerNonce: signer && nonce } }
}
