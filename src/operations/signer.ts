import { z } from 'zod'
import type { Context } from '../context.ts'
import { newSignerWarnings, quoteOwnerMessage, relayOwnerMessage } from '../intents/owner-message.ts'
import { signedFields } from '../resources/intent-input.ts'
import { newSigner, ownerMessageQuote } from '../resources/owner-message.ts'
import { deadline } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote, ownerSubmission } from './owner-operations.ts'

const submission = z.object({ newSigner, ...signedFields })

export const getSignerQuote = defineOperation(
  {
    id: 'getSignerQuote',
    tool: {
      name: 'svc_get_signer_quote',
      description:
        'First step of replacing the key that trades for an agent. Pass newSigner; the owner signs typedData in a wallet (EIP-712); then call svc_set_signer. Example: {"agentId":"1","newSigner":"0x…"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/signer/quote',
    summary: 'Get a quote for replacing the signer',
    description:
      "Returns what the owner's SetSigner message must match. With `newSigner`, also returns the typed data to sign, its digest and the body to post.",
    query: z.object({ newSigner: newSigner.optional(), deadline: deadline.optional() }),
    output: ownerMessageQuote('Signer', typedDataSchemas.SetSigner, submission),
  },
  async (context: Context, { agentId, newSigner, deadline }) =>
    quoteOwnerMessage(context, {
      agentId,
      primaryType: 'SetSigner',
      deadline,
      missing: 'newSigner',
      message: () => newSigner && { message: { agentId, signer: newSigner }, body: { newSigner } },
      warnings: ({ agent }) => newSignerWarnings(context, newSigner, agent.owner),
    }),
)

export const setSigner = defineOperation(
  {
    id: 'setSigner',
    tool: {
      name: 'svc_set_signer',
      description:
        "Replaces the key that trades for an agent; the former one is refused from the next block on. Before: svc_get_signer_quote; send its body with agentId and the owner's signature.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/signer',
    summary: 'Replace the signer of an agent',
    description:
      "Verifies a SetSigner message signed by the agent's owner and relays it. What the former signer signed and is not mined yet is refused; what was mined stays.",
    body: submission,
  },
  async (context: Context, { agentId, newSigner, ...signed }, call) =>
    relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: 'SetSigner',
      content: () => ({ message: { agentId, signer: newSigner }, args: [agentId, newSigner] }),
    }),
)
