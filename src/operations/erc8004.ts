import { z } from 'zod'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { OperationReply } from '../call.ts'
import { getAgent } from '../chain/agents.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getLinkTerms } from '../chain/read-registration-terms.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { requestingAgent } from '../executor/requester.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { submissionWarnings } from '../intents/intake.ts'
import { relaySignedBody, repeatingAgent } from '../intents/relay-signed-body.ts'
import { agentRecord, presentAgent } from '../resources/agent.ts'
import {
  addressOut,
  asOf,
  deadline,
  deadlineOut,
  digits,
  erc8004AgentId,
  hashOut,
  presentAsOf,
  signature,
  unixSeconds,
} from '../resources/primitives.ts'
import {
  eip712Info,
  presentEip712,
  presentTypedData,
  signableFields,
  typedDataSchemas,
} from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'

const submission = z.object({ erc8004AgentId, deadline, signature })

export const getERC8004LinkQuote = defineOperation(
  {
    id: 'getErc8004LinkQuote',
    path: '/agents/{agentId}/erc8004/link/quote',
    tag: 'Agents',
    summary: 'Get a quote for linking an ERC-8004 identity',
    description:
      "Returns what the owner's LinkERC8004 message must match. With `erc8004AgentId`, also returns the typed data to sign, its digest and the body to post.",
    query: z.object({ erc8004AgentId: erc8004AgentId.optional(), deadline: deadline.optional() }),
    output: z
      .object({
        agentId: digits('Agent id'),
        owner: addressOut.describe("The agent's owner, who must sign and hold the identity"),
        nonce: digits("The owner's nonce in the registry"),
        warnings: z.array(z.string()).optional(),
        eip712: eip712Info,
        agentRegistry: addressOut.describe('Verifying contract of the signature'),
        identityRegistry: addressOut.describe('The ERC-8004 identity registry'),
        serverTime: unixSeconds('The present time'),
        suggestedDeadline: deadlineOut('A deadline ten minutes ahead'),
        ...signableFields(typedDataSchemas.LinkERC8004, { id: 'Erc8004LinkBody', submission }),
        asOf,
      })
      .meta({ id: 'Erc8004LinkQuote' }),
    errors: [404, 502],
  },
  async (context: Context, { agentId, erc8004AgentId, ...requested }) => {
    const { chain } = context
    const { block, terms } = await getLinkTerms(chain, agentId)
    const { agent, domain, ownerNonce: nonce, identityRegistry } = terms
    const deadline = quoteDeadline(requested.deadline, block)
    const by = { as: 'owner', agent: requestingAgent(agentId, agent, block), account: agent.owner } as const
    const warnings = await submissionWarnings(context, 'LinkERC8004', by)
    return {
      agentId: `${agentId}`,
      owner: agent.owner,
      nonce: `${nonce}`,
      ...(warnings.length > 0 && { warnings }),
      eip712: presentEip712(domain, 'LinkERC8004'),
      agentRegistry: chain.contracts.AgentRegistry,
      identityRegistry,
      serverTime: `${nowAt(block)}`,
      suggestedDeadline: `${deadline}`,
      ...(erc8004AgentId !== undefined && {
        ...presentTypedData(domain, 'LinkERC8004', { agentId, erc8004AgentId, nonce, deadline }),
        body: { erc8004AgentId: `${erc8004AgentId}`, deadline: `${deadline}` },
      }),
      asOf: presentAsOf(block),
    }
  },
)

export const linkERC8004 = defineOperation(
  {
    id: 'linkErc8004',
    tool: {
      name: 'svc_link_agent_erc8004',
      description:
        'Links an agent to an ERC-8004 identity that its owner holds. Before: the owner signs LinkERC8004 (type and domain in svc://signing; nonce: signerNonce of svc_get_agent_registration_quote). Repeating it is safe: it executes once. After: svc_get_agent shows it.',
    },
    method: 'post',
    path: '/agents/{agentId}/erc8004/link',
    tag: 'Agents',
    summary: 'Link an agent to an ERC-8004 identity',
    description:
      "Verifies a LinkERC8004 message signed by the agent's owner, who must hold the identity token, and relays it. Posting the identical body again responds 200 with the same result.",
    body: submission,
    status: 201,
    replay: 200,
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
    errors: [404, 409, 502, 503],
  },
  async (context: Context, { agentId, erc8004AgentId, deadline, signature }, call) => {
    const { chain } = context
    const to = chain.contracts.AgentRegistry
    const posted = { kind: 'LinkERC8004', nonce: undefined, by: repeatingAgent(agentId) } as const
    const { hash, isReplay, warnings } = await relaySignedBody(context, call, posted, async () => {
      const { block, terms } = await getLinkTerms(chain, agentId)
      return {
        message: { agentId, erc8004AgentId, deadline },
        signature,
        terms: { domain: terms.domain, nonce: terms.ownerNonce, block },
        by: { as: 'owner', agent: requestingAgent(agentId, terms.agent, block), account: terms.agent.owner },
        callWith: accepted => ({
          to,
          data: encodeCall(agentRegistryAbi, 'linkERC8004IdentityWithSignature', [
            agentId,
            erc8004AgentId,
            deadline,
            accepted,
          ]),
        }),
      }
    })
    const linked = await getAgent(chain, agentId)
    const response = {
      agentId: `${agentId}`,
      agent: presentAgent(linked.agent),
      agentRegistry: to,
      transactionHash: hash,
      ...(warnings && { warnings }),
      asOf: presentAsOf(linked.block),
    }
    return new OperationReply(response, { isReplay })
  },
)
