import { encodeFunctionData } from 'viem'
import { z } from 'zod'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { getAgent, getLinkTerms } from '../chain/agents.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import { refuse } from '../errors/catalogue.ts'
import type { RelayRequest } from '../executor/intent.ts'
import { digestOf } from '../protocol/typed-data.ts'
import { agentParams, agentRecord, presentAgent } from '../resources/agent.ts'
import { eip712Info, presentEip712, presentTypedData, typedData } from '../resources/intent.ts'
import {
  addressOut,
  asOf,
  deadline,
  digits,
  erc8004AgentId,
  hashOut,
  signature,
  unixSeconds,
} from '../resources/primitives.ts'
import { defineOperation, Reply } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { signedNonce } from './register.ts'
import { deadlineRefusal, deadlineWarnings, isKnown, mine } from './relay-intent.ts'

const QUOTED_DEADLINE_SECONDS = 600n

export const getERC8004LinkQuote = defineOperation(
  {
    id: 'getErc8004LinkQuote',
    method: 'get',
    path: '/agents/{agentId}/erc8004/link/quote',
    tag: 'Agents',
    summary: 'Quote for linking an ERC-8004 identity',
    description:
      'What a LinkERC8004 message must match. With `erc8004AgentId` it also answers the typed data that the owner signs, its digest and the body to post.',
    params: agentParams,
    query: z.object({ erc8004AgentId: erc8004AgentId.optional(), deadline: deadline.optional() }),
    status: 200,
    output: z
      .object({
        agentId: digits('Agent id'),
        owner: addressOut.meta({ description: "The agent's owner, who must sign and hold the identity" }),
        nonce: digits("The owner's nonce in the registry"),
        eip712: eip712Info,
        agentRegistry: addressOut.meta({ description: 'Verifying contract of the signature' }),
        identityRegistry: addressOut.meta({ description: 'The ERC-8004 identity registry' }),
        serverTime: unixSeconds("The chain's time"),
        suggestedDeadline: unixSeconds('A deadline ten minutes ahead'),
        typedData: typedData.optional(),
        digest: z.string().optional().meta({ description: 'EIP-712 digest of typedData' }),
        body: z.record(z.string(), z.unknown()).optional().meta({
          description: 'The body to post once the signature of typedData is added as `signature`',
        }),
        asOf,
      })
      .meta({ id: 'Erc8004LinkQuote' }),
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { agentId, erc8004AgentId, ...asked }) => {
    const { block, terms } = await getLinkTerms(chain, agentId)
    const { agent, domain, ownerNonce: nonce, identityRegistry } = terms
    const deadline = asked.deadline ?? block.timestamp + QUOTED_DEADLINE_SECONDS
    return {
      agentId: `${agentId}`,
      owner: agent.owner,
      nonce: `${nonce}`,
      eip712: presentEip712(domain, 'LinkERC8004'),
      agentRegistry: chain.contracts.AgentRegistry,
      identityRegistry,
      serverTime: `${block.timestamp}`,
      suggestedDeadline: `${deadline}`,
      ...(erc8004AgentId !== undefined && {
        ...presentTypedData(domain, 'LinkERC8004', { agentId, erc8004AgentId, nonce, deadline }),
        body: { erc8004AgentId: `${erc8004AgentId}`, deadline: `${deadline}` },
      }),
      asOf: presentBlock(block),
    }
  },
)

export const linkERC8004 = defineOperation(
  {
    id: 'linkErc8004',
    tool: 'svc_link_agent_erc8004',
    method: 'post',
    path: '/agents/{agentId}/erc8004/link',
    tag: 'Agents',
    summary: 'Link an agent to an ERC-8004 identity',
    description:
      "Verifies a LinkERC8004 message signed by the agent's owner, who must hold the identity token, and relays it. The identical signed body again answers 200 with the same.",
    params: agentParams,
    body: z.object({ erc8004AgentId, deadline, signature }),
    status: 201,
    output: z
      .object({
        agentId: digits('Agent id'),
        agent: agentRecord,
        agentRegistry: addressOut,
        transactionHash: hashOut,
        warnings: z.array(z.string()).optional(),
        asOf,
      })
      .meta({ id: 'Erc8004Link' }),
    errors: [400, 404, 409, 500, 502, 503],
  },
  async ({ chain, relayer }, { agentId, erc8004AgentId, deadline, signature }) => {
    const { block, terms } = await getLinkTerms(chain, agentId)
    const { agent, domain, ownerNonce } = terms
    const to = chain.contracts.AgentRegistry
    const data = encodeFunctionData({
      abi: agentRegistryAbi,
      functionName: 'linkERC8004IdentityWithSignature',
      args: [agentId, erc8004AgentId, deadline, signature],
    })
    const messageOf = (nonce: bigint) => ({ agentId, erc8004AgentId, nonce, deadline })
    const relayOf = (nonce: bigint): RelayRequest => ({
      digest: digestOf(domain, 'LinkERC8004', messageOf(nonce)),
      kind: 'link',
      group: `signer:${agent.owner}`,
      groupNonce: `${nonce}`,
      deadline,
      call: { to, data },
    })
    const nonce =
      (await signedNonce(chain, ownerNonce, agent.owner, signature, nonce => relayOf(nonce).digest)) ?? ownerNonce
    const relay = relayOf(nonce)
    if (nonce === ownerNonce)
      await verifySignature(
        chain,
        agent.owner,
        { domain, primaryType: 'LinkERC8004', message: messageOf(nonce) },
        signature,
      )
    const known = await isKnown(relayer, relay)
    const refused =
      deadlineRefusal(deadline, block) ??
      (nonce === ownerNonce ? undefined : refuse('INVALID_NONCE', { given: nonce, expected: ownerNonce }))
    if (refused && !known) throw refused

    const mined = await mine(relayer, relay)
    const linked = await getAgent(chain, agentId)
    const answer = {
      agentId: `${agentId}`,
      agent: presentAgent(linked.agent),
      agentRegistry: to,
      transactionHash: mined.hash,
      ...deadlineWarnings(deadline, block),
      asOf: presentBlock(linked.block),
    }
    return known ? new Reply(200, answer) : answer
  },
)
