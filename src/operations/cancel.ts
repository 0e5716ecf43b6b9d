import { z } from 'zod'
import type { Context } from '../context.ts'
import { quoteOwnerMessage, relayOwnerMessage } from '../intents/owner-message.ts'
import { signedFields } from '../resources/intent-input.ts'
import { ownerMessageQuote } from '../resources/owner-message.ts'
import { deadline, POSITIVE_DIGITS, uint } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote, ownerSubmission } from './owner-operations.ts'

const untilNonce = uint.meta({
  description: "The next nonce of the agent's intents afterwards: at most 64 above the present one",
  example: '5',
  pattern: POSITIVE_DIGITS,
})

const submission = z.object({ untilNonce, ...signedFields })

export const getCancelQuote = defineOperation(
  {
    id: 'getCancelQuote',
    tool: {
      name: 'svc_get_cancel_quote',
      description:
        'First step of voiding intents that an agent has signed and that are not mined yet. Without untilNonce, the next one is voided. The owner signs typedData in a wallet (EIP-712); then call svc_cancel_intents. Example: {"agentId":"1"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/cancel/quote',
    summary: 'Get a quote for cancelling intents',
    description:
      "Returns what the owner's CancelIntents message must match, the typed data to sign, its digest and the body to post. Without `untilNonce`, one intent is cancelled: the next.",
    query: z.object({ untilNonce: untilNonce.optional(), deadline: deadline.optional() }),
    output: ownerMessageQuote('Cancel', typedDataSchemas.CancelIntents, submission),
  },
  async (context: Context, { agentId, untilNonce, deadline }) =>
    quoteOwnerMessage(context, {
      agentId,
      primaryType: 'CancelIntents',
      deadline,
      message({ intentNonce }) {
        const until = untilNonce ?? intentNonce + 1n
        return { message: { agentId, untilNonce: until }, body: { untilNonce: `${until}` } }
      },
    }),
)

export const cancelIntents = defineOperation(
  {
    id: 'cancelIntents',
    tool: {
      name: 'svc_cancel_intents',
      description:
        "Voids the agent's signed intents with a nonce below untilNonce that are not mined yet. Before: svc_get_cancel_quote; send its body with agentId and the owner's signature.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/cancel',
    summary: 'Cancel the intents of an agent',
    description:
      "Verifies a CancelIntents message signed by the agent's owner and relays it. The agent's nonce advances to `untilNonce`, so whatever the agent signed below it and is not mined yet is void.",
    body: submission,
  },
  async (context: Context, { agentId, untilNonce, ...signed }, call) =>
    relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: 'CancelIntents',
      content: () => ({ message: { agentId, untilNonce }, args: [agentId, untilNonce] }),
    }),
)
