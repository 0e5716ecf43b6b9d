import { z } from 'zod'
import type { Context } from '../context.ts'
import { quoteOwnerMessage, relayOwnerMessage } from '../intents/owner-message.ts'
import { signedFields } from '../resources/intent-input.ts'
import { ownerMessageQuote } from '../resources/owner-message.ts'
import { agentId, deadline } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote, ownerSubmission } from './owner-operations.ts'

const action = z.enum(['reduceOnly', 'flatten']).meta({
  description:
    '`reduceOnly` stops buying; `flatten` also sells every position of the agent, each at least at the floor of the trade policy',
  example: 'flatten',
})
const OTHERS = 'Further agents of the same owner, which the same signature stops'
const otherAgentIds = z.array(agentId).max(63)

const submission = z.object({
  action,
  otherAgentIds: otherAgentIds.optional().meta({ description: OTHERS, example: ['2', '3'] }),
  ...signedFields,
})

/** The messages by action. */
const messages = { reduceOnly: 'StopBuying', flatten: 'CloseAll' } as const

export const getStopQuote = defineOperation(
  {
    id: 'getStopQuote',
    tool: {
      name: 'svc_get_stop_quote',
      description:
        'First step of stopping an agent: reduceOnly stops buying, flatten also sells every position. The owner signs typedData in a wallet (EIP-712); then call svc_stop_agent. Example: {"agentId":"1","action":"flatten"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/stop/quote',
    summary: 'Get a quote for stopping an agent',
    description:
      "Returns what the owner's message must match: StopBuying for `reduceOnly`, CloseAll for `flatten`. Also returns the typed data to sign, its digest and the body to post. One signature stops as many agents of the owner as `otherAgentIds` names.",
    query: z.object({
      action,
      otherAgentIds: z
        .string()
        .max(4096)
        .transform(list => list.split(','))
        .pipe(otherAgentIds)
        .optional()
        .meta({ description: `${OTHERS}; separated by commas`, example: '2,3', 'x-list': 'comma' }),
      deadline: deadline.optional(),
    }),
    output: ownerMessageQuote(
      'Stop',
      z.discriminatedUnion('primaryType', [typedDataSchemas.StopBuying, typedDataSchemas.CloseAll]),
      submission,
    ),
  },
  async (context: Context, { agentId, action, otherAgentIds = [], deadline }) =>
    quoteOwnerMessage(context, {
      agentId,
      primaryType: messages[action],
      deadline,
      message: () => ({
        message: { agentIds: [agentId, ...otherAgentIds] },
        body: { action, ...(otherAgentIds.length > 0 && { otherAgentIds: otherAgentIds.map(String) }) },
      }),
      warnings: ({ openPositionIds }) =>
        action === 'flatten' && openPositionIds.length > 0
          ? [`Positions to sell: ${openPositionIds.length}. What a pool cannot take at the floor is sold later.`]
          : [],
    }),
)

export const stopAgent = defineOperation(
  {
    id: 'stopAgent',
    tool: {
      name: 'svc_stop_agent',
      description:
        "Stops an agent for its owner: reduceOnly or flatten. Before: svc_get_stop_quote; send its body with agentId and the owner's signature. Repeating the identical body is safe. After a flatten: svc_get_mandate shows which positions remain, svc_get_position_automation why.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/stop',
    summary: 'Stop an agent',
    description:
      "Verifies a StopBuying or CloseAll message signed by the agent's owner and relays it. After `flatten`, anybody may sell the agent's positions, and the keeper of this deployment does: at the floor of the trade policy, in as many transactions as needed. `openPositionIds` are those that remain; `/agents/{agentId}/positions/{positionId}/automation` says why. The owner pays no gas.",
    body: submission,
    requestKind: 'reductions',
  },
  async (context: Context, { agentId, action, otherAgentIds = [], ...signed }, call) => {
    const agentIds = [agentId, ...otherAgentIds]
    return relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: messages[action],
      content: () => ({ message: { agentIds }, args: [agentIds] }),
    })
  },
)
