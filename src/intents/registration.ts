import { agentIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import { digestOf, type Message } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { type Call, OperationReply } from '../call.ts'
import { addressOfReference } from '../chain/find-vault.ts'
import { readOwnerControls } from '../chain/read-owner-terms.ts'
import { getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { malformed, refuse } from '../errors/refuse.ts'
import { relaySignedBody, sendingOf } from './relay-signed-body.ts'

/** The message that a signer signs to register, without its nonce; the vault by slug or address. */
type SelfRegister = {
  vault: string
  name: string
  metadataURI: string
  signer: Address
  linkERC8004: boolean
  erc8004AgentId: bigint
  deadline: bigint
}

/** The owner's consent in a body; all fields or none. */
type GivenConsent = {
  owner?: Address | undefined
  ownerNonce?: bigint | undefined
  ownerSignature?: Hex | undefined
}

/**
 * Relays a registration that its signer, and its owner if the body names one, have signed, once its fee is paid.
 * Returns the new agent. Throws VAULT_NOT_FOUND, INVALID_ERC8004_LINK, INVALID_REQUEST, OWNER_IS_SIGNER,
 * OWNER_CONTROLS_NOT_SET and the refusals of `relaySignedBody`.
 */
export async function relayRegistration(
  context: Context,
  call: Call,
  { signature, owner, ownerNonce, ownerSignature, ...given }: SelfRegister & GivenConsent & { signature: Hex },
) {
  const { chain, payments } = context
  const { name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = given
  if (!linkERC8004 && erc8004AgentId !== 0n)
    throw refuse('INVALID_ERC8004_LINK', { problem: 'linkERC8004 is false and erc8004AgentId is not "0"' })
  const to = chain.contracts.AgentRegistry
  const by = { as: 'registrant', account: signer } as const
  const posted = { kind: 'SelfRegister', nonce: undefined, by, payments } as const
  const execution = await relaySignedBody(context, call, posted, async () => {
    const sent = { ...given, vault: await addressOfReference(chain, given.vault) }
    const consent = await verifyConsent(context, call, sent, { owner, ownerNonce, ownerSignature })
    const { block, terms } = await getRegistrationTerms(chain, { signer })
    return {
      message: sent,
      signature,
      consent,
      terms: { domain: terms.domain, nonce: terms.signerNonce ?? 0n, block },
      by,
      callWith: accepted => ({
        to,
        data: consent
          ? encodeFunctionData({
              abi: agentRegistryAbi,
              functionName: 'registerOwnedAgent',
              args: [{ ...sent, owner: consent.owner }, deadline, accepted, { ...consent.signed, deadline }],
            })
          : encodeFunctionData({
              abi: agentRegistryAbi,
              functionName: 'selfRegisterAgent',
              args: [sent.vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, accepted],
            }),
      }),
      refusalOfTerms: async () => (terms.paused ? refuse('REGISTRATION_PAUSED') : undefined),
      fee: payments && { payments, amount: terms.fee },
    }
  })
  const agentId = agentIdIn(to, execution.logs)
  if (agentId === undefined) throw new Error('The receipt of a mined registration has no AgentRegistered event')
  const response = {
    agentId: `${agentId}`,
    transactionHash: execution.hash,
    transaction: {
      ...execution.call,
      chainId: chain.id,
      description: `${owner ? 'registerOwnedAgent' : 'selfRegisterAgent'} on the agent registry`,
    },
    message: `Agent ${agentId} is registered.`,
    ...(execution.warnings && { warnings: execution.warnings }),
  }
  return new OperationReply(response, execution)
}

/** Verifies that the owner, if the body names one, consents to the registration. */
async function verifyConsent(
  context: Context,
  { client }: Call,
  sent: Message & { signer: Address },
  { owner, ownerNonce: nonce, ownerSignature: signature }: GivenConsent,
) {
  if (owner === undefined && nonce === undefined && signature === undefined) return undefined
  if (owner === undefined || nonce === undefined || signature === undefined)
    throw malformed('send owner, ownerNonce and ownerSignature together, or none of them')
  if (owner === sent.signer) throw refuse('OWNER_IS_SIGNER', { owner })
  const { chain, relayer } = context
  const domain = await readOwnerControls(chain)
  if (domain === undefined) throw refuse('OWNER_CONTROLS_NOT_SET')
  const message = { ...sent, nonce }
  const signed = { domain, primaryType: 'OwnAgent', message } as const
  const { accepted, byContract } = await verifySignature(chain, owner, signed, signature, {
    maySearch: client?.maySearch,
    sending: sendingOf(context, relayer.address),
  })
  return { owner, signed: { nonce, signature: accepted }, byContract, digest: digestOf(domain, 'OwnAgent', message) }
}
