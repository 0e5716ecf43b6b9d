import { Track } from '@agent-trading-service/protocol/enums'
import { type Domain, domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, erc20Abi, erc721Abi, type Hex, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { foundAgent } from './agent-record.ts'
import { decodeAgent } from './agents.ts'
import { callReader } from './call-service-reader.ts'
import type { Chain } from './configured-chain.ts'
import {
  agentRegistry,
  allocationManager,
  eip712Contract,
  feeManager,
  mandateVault,
  vaultTrackRegistry,
} from './contracts.ts'
import { decodeResult } from './encode-and-decode-call.ts'
import { call, optional, readTree } from './read-tree.ts'

/**
 * What a registration must match. `signerNonce` is undefined without a signer; the fee is in base units of its asset.
 */
export type RegistrationTerms = {
  domain: Domain
  selfRegisterTypehash: Hex
  signerNonce: bigint | undefined
  paused: boolean
  /** The contract that verifies the messages of owners; undefined without the extension. */
  ownerControls: Address | undefined
  /** The contract that keeps orders; undefined without the extension. */
  orderBook: Address | undefined
  fee: { amount: bigint; asset: Address; treasury: Address; relayer: Address }
}

/** The requested registration, as far as the request says. The fee is paid in `asset`, by `payer`. */
export type RegistrationPlan = {
  signer?: Address | undefined
  payer?: Address | undefined
  vault?: Address | undefined
  asset?: Address | undefined
  erc8004AgentId?: bigint | undefined
}

/** What decides whether the contracts accept a plan; undefined where it says nothing. */
export type RegistrationProspects = Awaited<ReturnType<typeof getRegistrationTerms>>['prospects']

/** Reads the terms of a registration, with the next nonce of its signer and its prospects, in one call. */
export async function getRegistrationTerms(
  chain: Chain,
  { signer, payer, vault, asset, erc8004AgentId }: RegistrationPlan = {},
) {
  const registry = agentRegistry(chain)
  const fees = feeManager(chain)
  const tracks = vaultTrackRegistry(chain)
  const identities = chain.contracts.ERC8004IdentityRegistry
  const { block, values } = await readTree(chain, {
    domain: call(eip712Contract(registry.address), 'eip712Domain', []),
    selfRegisterTypehash: call(registry, 'SELF_REGISTER_TYPEHASH', []),
    paused: call(registry, 'paused', []),
    ownerControls: optional(call(registry, 'ownerControls', [])),
    orderBook: optional(call(registry, 'orderBook', [])),
    fee: {
      amount: call(fees, 'getRegistrationFee', []),
      asset: call(fees, 'feeAsset', []),
      treasury: call(fees, 'treasury', []),
      relayer: call(fees, 'registrationFeeRelayer', []),
    },
    nonce: call(registry, 'nonces', [signer ?? zeroAddress]),
    prospects: {
      vault: vault && {
        isRegistered: call(tracks, 'isRegisteredVault', [vault]),
        challenge: optional(call(tracks, 'getVaultTrackConfig', [vault, BigInt(Track.Challenge)])),
        capitalMode: optional(call(tracks, 'capitalModeOf', [vault, BigInt(Track.Challenge)])),
        tradingPaused: optional(call(mandateVault(vault), 'tradingPaused', [])),
        totalAssets: optional(call(mandateVault(vault), 'totalAssets', [])),
        totalCaps:
          chain.trading &&
          optional(call(allocationManager({ ...chain, trading: chain.trading }), 'totalAgentCaps', [vault])),
      },
      payerBalance: payer && asset && optional(call({ address: asset, abi: erc20Abi }, 'balanceOf', [payer])),
      identityHolder:
        identities && erc8004AgentId !== undefined
          ? optional(call({ address: identities, abi: erc721Abi }, 'ownerOf', [erc8004AgentId]))
          : undefined,
    },
  })
  const { domain, nonce, prospects, ...read } = values
  const terms: RegistrationTerms = { ...read, domain: toDomain(domain), signerNonce: signer && nonce }
  return { block, terms, prospects }
}

/** Reads what an ERC-8004 identity link must match, and the owner's next nonce. Throws AGENT_NOT_FOUND. */
export async function getLinkTerms(chain: Chain, agentId: bigint) {
  const { block, values } = await callReader(chain, 'linkTerms', agentId)
  const { domain, ownerNonce, identityRegistry } = values
  const agent = foundAgent(decodeAgent(values.agent), agentId)
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
