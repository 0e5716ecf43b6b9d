import { encodeFunctionData, formatUnits, type Hex, toEventSelector } from 'viem'
import { z } from 'zod'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { getRegistrationTerms } from '../chain/registry.ts'
import { recover, verifySignature } from '../chain/signatures.ts'
import { digestOf } from '../chain/typed-data.ts'
import { refuse } from '../errors.ts'
import type { Relay } from '../executor/executor.ts'
import { presentEip712, presentTypedData, USDC_DECIMALS } from '../resources/intent.ts'
import { address, deadline } from '../resources/primitives.ts'
import { registration, registrationBody, registrationFields, registrationQuote } from '../resources/registration.ts'
import { defineOperation, Reply } from './operation.ts'
import { presentBlock } from './quoting.ts'
import { deadlineRefusal, deadlineWarnings, isKnown, mine } from './submission.ts'

const QUOTED_DEADLINE_SECONDS = 600n

export const getRegistrationQuote = defineOperation(
  {
    id: 'getRegistrationQuote',
    tool: 'svc_get_agent_registration_quote',
    method: 'get',
    path: '/agents/register/quote',
    tag: 'Agents',
    summary: 'Quote for registering an agent',
    description:
      'The fee, the signing domain and, with `signer`, the nonce of a SelfRegister message. With `signer`, `vault`, `name` and `metadataURI` it also answers the typed data to sign, its digest and the body to post.',
    query: z.object({
      signer: address.optional(),
      vault: address.optional(),
      name: registrationFields.name.optional(),
      metadataURI: registrationFields.metadataURI.optional(),
      linkERC8004: z
        .enum(['true', 'false'])
        .transform(value => value === 'true')
        .default(false),
      erc8004AgentId: registrationFields.erc8004AgentId,
      deadline: deadline.optional(),
    }),
    status: 200,
    output: registrationQuote,
    errors: [400, 500, 502],
  },
  async ({ chain }, { signer, vault, name, metadataURI, linkERC8004, erc8004AgentId, ...asked }) => {
    const { block, terms } = await getRegistrationTerms(chain, signer)
    const { fee, domain, signerNonce } = terms
    const deadline = asked.deadline ?? block.timestamp + QUOTED_DEADLINE_SECONDS
    const message = signer &&
      signerNonce !== undefined &&
      vault &&
      name &&
      metadataURI && { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, nonce: signerNonce, deadline }
    return {
      registrationFee: {
        amount: `${fee.amount}`,
        assetSymbol: 'USDC',
        tokenAddress: fee.asset,
        decimals: USDC_DECIMALS,
        displayUsd: formatUnits(fee.amount, USDC_DECIMALS),
      },
      x402: {
        enabled: false,
        network: null,
        payTo: null,
        facilitatorUrl: null,
        httpRoute: 'POST /agents/register',
      },
      eip712: {
        ...presentEip712(domain, 'SelfRegister'),
        selfRegisterTypehash: terms.selfRegisterTypehash,
      },
      agentRegistry: chain.contracts.AgentRegistry,
      signerNonce: signerNonce === undefined ? null : `${signerNonce}`,
      registryPaused: terms.paused,
      serverTime: `${block.timestamp}`,
      suggestedDeadline: `${deadline}`,
      ...(message && {
        ...presentTypedData(domain, 'SelfRegister', message),
        body: {
          vault,
          name,
          metadataURI,
          signer,
          linkERC8004,
          erc8004AgentId: `${erc8004AgentId}`,
          deadline: `${deadline}`,
        },
      }),
      asOf: presentBlock(block),
    }
  },
)

export const registerAgent = defineOperation(
  {
    id: 'registerAgent',
    tool: 'svc_register_agent',
    method: 'post',
    path: '/agents/register',
    tag: 'Agents',
    summary: 'Register an agent',
    description:
      'Verifies a SelfRegister message of the signer and relays it. 201 with the new agent id; the identical signed body again answers 200 with the same.',
    body: registrationBody,
    status: 201,
    output: registration,
    errors: [400, 404, 409, 500, 502, 503],
  },
  async ({ chain, relayer }, { signature, ...sent }) => {
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = sent
    if (!linkERC8004 && erc8004AgentId !== 0n)
      throw refuse('INVALID_ERC8004_LINK', { problem: 'linkERC8004 is false and erc8004AgentId is not "0"' })
    const { block, terms } = await getRegistrationTerms(chain, signer)
    const to = chain.contracts.AgentRegistry
    const data = encodeFunctionData({
      abi: agentRegistryAbi,
      functionName: 'selfRegisterAgent',
      args: [vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, signature],
    })
    const relayOf = (nonce: bigint): Relay => ({
      digest: digestOf(terms.domain, 'SelfRegister', { ...sent, nonce }),
      kind: 'register',
      group: `signer:${signer}`,
      groupNonce: `${nonce}`,
      deadline,
      call: { to, data },
    })
    const current = terms.signerNonce ?? 0n
    const nonce = (await signedNonce(current, signer, signature, nonce => relayOf(nonce).digest)) ?? current
    const relay = relayOf(nonce)
    if (nonce === current) await verifySignature(chain, signer, relay.digest, signature)
    const known = await isKnown(relayer, relay)
    const refused =
      deadlineRefusal(deadline, block) ??
      (terms.paused ? refuse('REGISTRATION_PAUSED') : undefined) ??
      (nonce === current ? undefined : refuse('INVALID_NONCE', { given: `${nonce}`, expected: `${current}` }))
    if (refused && !known) throw refused

    const mined = await mine(relayer, relay)
    const agentId = agentIdOf(to, mined.logs)
    const answer = {
      agentId: `${agentId}`,
      transactionHash: mined.hash,
      transaction: { to, data, chainId: chain.id, description: 'selfRegisterAgent on the agent registry' },
      message: `Agent ${agentId} is registered.`,
      ...deadlineWarnings(deadline, block),
    }
    return known ? new Reply(200, answer) : answer
  },
)

const REMEMBERED_NONCES = 8n

/**
 * The nonce that a key signed: the body carries none, and a body that was relayed before was signed with an earlier
 * one. Undefined when the signature is no key's over any of the last nonces.
 */
export async function signedNonce(current: bigint, signer: string, signature: Hex, digestOf: (nonce: bigint) => Hex) {
  for (let nonce = current; nonce >= 0n && current - nonce < REMEMBERED_NONCES; nonce--) {
    const { address } = await recover(digestOf(nonce), signature)
    if (address === signer) return nonce
    if (address === null) return undefined
  }
  return undefined
}

const AGENT_REGISTERED = toEventSelector(
  agentRegistryAbi.find(item => item.type === 'event' && item.name === 'AgentRegistered') as never,
)

/** The agent id of the receipt's AgentRegistered event. */
function agentIdOf(registry: string, logs: readonly { address: string; topics: readonly string[] }[]): bigint {
  const log = logs.find(
    ({ address, topics }) => address.toLowerCase() === registry.toLowerCase() && topics[0] === AGENT_REGISTERED,
  )
  if (log?.topics[1] === undefined) throw new Error('A mined registration has no AgentRegistered event')
  return BigInt(log.topics[1])
}
