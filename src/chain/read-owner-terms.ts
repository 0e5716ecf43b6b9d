import { type Domain, domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, zeroAddress } from 'viem'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { refuse } from '../errors/refuse.ts'
import { foundAgent } from './agent-record.ts'
import { type Agent, decodeAgent } from './agents.ts'
import { callReader } from './call-service-reader.ts'
import type { Block, Chain } from './configured-chain.ts'
import { decodeResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { call, readTree } from './read-tree.ts'

/**
 * A mandate in force. USDC amounts are base units, times Unix seconds; 0 sets no limit. `version` 0: none was signed.
 */
export type Mandate = {
  mode: number
  maxTradeUsdc: bigint
  maxDailyTurnoverUsdc: bigint
  maxExposureUsdc: bigint
  validUntil: bigint
  /** Since when the owner closes all positions; 0 while it does not. */
  closingSince: bigint
  version: bigint
  /** The mandate's tokens, of the tokens that the vault allows; undefined if it names none. */
  allowedTokens: Address[] | undefined
}

/** What the messages of an agent's owner must match, and what they are about. */
export type OwnerTerms = {
  agent: Agent
  /** The OwnerControls contract, which verifies the messages. */
  contract: Address
  domain: Domain
  ownerNonce: bigint
  mandate: Mandate
  /** The address that the agent is offered to; undefined without an offer. */
  pendingOwner: { address: Address; nonce: bigint } | undefined
  /** The next nonce of the agent's intents. */
  intentNonce: bigint
  openPositionIds: readonly bigint[]
}

/** Reads the terms of an owner's next message. Throws AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET. */
export async function getOwnerTerms(chain: Chain, agentId: bigint): Promise<{ block: Block; terms: OwnerTerms }> {
  const { block, values } = await callReader(chain, 'ownerTerms', agentId)
  const { terms: results } = values
  const agent = foundAgent(decodeAgent(results.agent), agentId)
  if (results.ownerControls === zeroAddress) throw refuse('OWNER_CONTROLS_NOT_SET')
  const { hasTokenList, ...mandate } = decodeResult(ownerControlsAbi, 'mandateOf', results.mandate)
  const pendingOwner = decodeResult(ownerControlsAbi, 'pendingOwnerOf', results.pendingOwner)
  return {
    block,
    terms: {
      agent,
      contract: results.ownerControls,
      domain: toDomain(decodeResult(domainAbi, 'eip712Domain', results.domain)),
      ownerNonce: decodeResult(ownerControlsAbi, 'nonces', results.ownerNonce),
      mandate: {
        ...mandate,
        allowedTokens: hasTokenList
          ? results.vaultTokens.filter((_, index) => {
              const allowed = results.allowed[index]
              return allowed !== undefined && decodeResult(ownerControlsAbi, 'isTokenAllowed', allowed)
            })
          : undefined,
      },
      pendingOwner:
        pendingOwner === zeroAddress
          ? undefined
          : { address: pendingOwner, nonce: decodeResult(ownerControlsAbi, 'nonces', results.pendingOwnerNonce) },
      intentNonce: tryDecodeResult(tradeRouterAbi, 'nonces', results.intentNonce) ?? 0n,
      openPositionIds: tryDecodeResult(positionManagerAbi, 'getOpenPositionIds', results.openPositionIds) ?? [],
    },
  }
}

/** Reads what an owner's consent to a registration must match. Throws OWNER_CONTROLS_NOT_SET. */
export async function getConsentTerms(
  chain: Chain,
  owner: Address,
): Promise<{ block: Block; domain: Domain; nonce: bigint }> {
  const domain = await readOwnerControls(chain)
  if (domain === undefined) throw refuse('OWNER_CONTROLS_NOT_SET')
  const { block, values } = await readTree(chain, {
    nonce: call({ address: domain.verifyingContract, abi: ownerControlsAbi }, 'nonces', [owner]),
  })
  return { block, domain, nonce: values.nonce }
}

/** Reads to whom each agent is offered, at one block, by default the newest; the zero address without an offer. */
export async function readPendingOwners(
  chain: Chain,
  ownerControls: Address,
  agentIds: readonly bigint[],
  at?: Block,
): Promise<Address[]> {
  const controls = { address: ownerControls, abi: ownerControlsAbi }
  return (
    await readTree(
      chain,
      agentIds.map(agentId => call(controls, 'pendingOwnerOf', [agentId])),
      at,
    )
  ).values
}

/** Reads the domain of the messages of owners; undefined if the deployment has no OwnerControls. */
export async function readOwnerControls(chain: Chain): Promise<Domain | undefined> {
  const { values } = await callReader(chain, 'ownerTerms', 0n)
  const { ownerControls, domain } = values.terms
  return ownerControls === zeroAddress ? undefined : toDomain(decodeResult(domainAbi, 'eip712Domain', domain))
}
