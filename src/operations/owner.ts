import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { type OwnerTerms, readOwnerControls } from '../chain/read-owner-terms.ts'
import { readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { OWNER_EVENTS } from '../history/tables/events.ts'
import { newSignerWarnings, ownerOf, quoteOwnerMessage, relayOwnerMessage } from '../intents/owner-message.ts'
import { presentOwnerEvent } from '../live/present-owner-event.ts'
import { listedAgent, ownerParams, presentListed } from '../resources/agent.ts'
import { signedFields } from '../resources/intent-input.ts'
import { mandate } from '../resources/mandate.ts'
import { newSigner, ownerMessageQuote } from '../resources/owner-message.ts'
import {
  address,
  addressOut,
  asOf,
  deadline,
  digits,
  hashOut,
  lagBlocks,
  nextCursor,
  pageLimit,
  presentAsOf,
  unixSeconds,
} from '../resources/primitives.ts'
import { presentTradeCursor, tradeCursor } from '../resources/trade.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote, ownerSubmission } from './owner-operations.ts'

const newOwner = address.meta({
  description: 'To whom the agent is offered; the zero address withdraws the offer',
  example: '0x00000000000000000000000000000000000000a1',
})

const offer = z.object({ newOwner, ...signedFields })
const acceptance = z.object({ newSigner, ...signedFields })

export const getOwnershipQuote = defineOperation(
  {
    id: 'getOwnershipQuote',
    tool: {
      name: 'svc_get_ownership_quote',
      description:
        'First step of giving an agent to another owner. Pass newOwner; the owner signs typedData in a wallet (EIP-712); then call svc_offer_agent. Example: {"agentId":"1","newOwner":"0x…"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/owner/quote',
    summary: 'Get a quote for offering an agent to a new owner',
    description:
      "Returns what the owner's OfferOwnership message must match. With `newOwner`, also returns the typed data to sign, its digest and the body to post.",
    query: z.object({ newOwner: newOwner.optional(), deadline: deadline.optional() }),
    output: ownerMessageQuote('Ownership', typedDataSchemas.OfferOwnership, offer),
  },
  async (context: Context, { agentId, newOwner, deadline }) =>
    quoteOwnerMessage(context, {
      agentId,
      primaryType: 'OfferOwnership',
      deadline,
      missing: 'newOwner',
      message: () => newOwner && { message: { agentId, newOwner }, body: { newOwner } },
    }),
)

export const offerOwnership = defineOperation(
  {
    id: 'offerOwnership',
    tool: {
      name: 'svc_offer_agent',
      description:
        "Offers an agent to a new owner, who takes it with svc_accept_agent; nothing changes before. Before: svc_get_ownership_quote; send its body with agentId and the owner's signature.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/owner',
    summary: 'Offer an agent to a new owner',
    description:
      "Verifies an OfferOwnership message signed by the agent's owner and relays it. The agent changes hands when the new owner accepts. A second offer replaces the first.",
    body: offer,
  },
  async (context: Context, { agentId, newOwner, ...signed }, call) =>
    relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: 'OfferOwnership',
      content: () => ({ message: { agentId, newOwner }, args: [agentId, newOwner] }),
    }),
)

export const getAcceptanceQuote = defineOperation(
  {
    id: 'getAcceptanceQuote',
    tool: {
      name: 'svc_get_acceptance_quote',
      description:
        'First step of taking an agent that was offered. Pass newSigner, the key that is to trade; the new owner signs typedData in a wallet (EIP-712); then call svc_accept_agent. Example: {"agentId":"1","newSigner":"0x…"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/owner/acceptance/quote',
    summary: 'Get a quote for accepting an agent',
    description:
      "Returns what the new owner's AcceptOwnership message must match. With `newSigner`, also returns the typed data to sign, its digest and the body to post.",
    query: z.object({ newSigner: newSigner.optional(), deadline: deadline.optional() }),
    output: ownerMessageQuote('Acceptance', typedDataSchemas.AcceptOwnership, acceptance),
  },
  async (context: Context, { agentId, newSigner, deadline }) =>
    quoteOwnerMessage(context, {
      agentId,
      primaryType: 'AcceptOwnership',
      deadline,
      party({ pendingOwner }) {
        if (pendingOwner === undefined) throw refuse('NO_OWNERSHIP_OFFER', { agentId })
        return pendingOwner
      },
      missing: 'newSigner',
      message: () => newSigner && { message: { agentId, signer: newSigner }, body: { newSigner } },
      warnings: async ({ agent, pendingOwner, mandate }) => [
        ...(newSigner === agent.signer ? ["The former owner may still have the signer's key."] : []),
        ...(newSigner === undefined || newSigner === agent.signer
          ? []
          : [`The key that trades changes from ${agent.signer} to ${newSigner}.`]),
        ...(await newSignerWarnings(context, newSigner, pendingOwner?.address)),
        ...(mandate.version === 0n ? [] : ['The mandate of the former owner stays until you set another.']),
      ],
    }),
)

export const acceptOwnership = defineOperation(
  {
    id: 'acceptOwnership',
    tool: {
      name: 'svc_accept_agent',
      description:
        "Takes an agent that its owner has offered, and names the key that trades for it (newSigner). Before: svc_get_acceptance_quote; send its body with agentId and the new owner's signature. The former signer is refused from then on.",
    },
    ...ownerSubmission,
    path: '/agents/{agentId}/owner/acceptance',
    summary: 'Accept an agent',
    description:
      'Verifies an AcceptOwnership message signed by the address to which the agent is offered, and relays it. The agent and its payouts belong to that address from then on, and `newSigner` replaces the key that traded. The mandate stays until the new owner sets another.',
    body: acceptance,
  },
  async (context: Context, { agentId, newSigner, ...signed }, call) =>
    relayOwnerMessage(context, call, {
      ...signed,
      agentId,
      primaryType: 'AcceptOwnership',
      content: () => ({ message: { agentId, signer: newSigner }, args: [agentId, newSigner] }),
      party: newOwnerOf,
    }),
)

const ownerEvent = z
  .object({
    id: z.string().describe('Transaction hash and log index'),
    type: z.enum(OWNER_EVENTS),
    owner: addressOut.optional(),
    mandate: mandate
      .omit({ version: true })
      .extend({ allowedTokens: z.array(addressOut).nullable() })
      .optional()
      .describe('Of MandateUpdated: what holds since'),
    mode: z.string().optional().meta({ description: 'Of BuyingStopped and CloseAllStarted', example: 'reduceOnly' }),
    closingSince: unixSeconds('Of CloseAllStarted').optional(),
    from: addressOut.optional().describe('Of an offer and a transfer: the owner by then'),
    to: addressOut.nullable().optional().describe('The new owner; null for an offer that was withdrawn'),
    signer: addressOut.optional().describe('Of AgentSignerUpdated: who signs since'),
    fromNonce: digits('Of IntentsCancelled: the first nonce that is void').optional(),
    untilNonce: digits('Of IntentsCancelled: the first nonce that is not').optional(),
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    logIndex: z.int(),
    timestamp: unixSeconds('Time of the block'),
  })
  .meta({ id: 'OwnerEvent' })

export const listOwnerEvents = defineOperation(
  {
    id: 'listOwnerEvents',
    path: '/agents/{agentId}/owner/history',
    tag: 'Owners',
    summary: 'List what the owner of an agent has changed',
    description:
      'Returns the changes of the mandate, the signer and the owner, and stops and cancellations, newest first, as `mandate` events of the stream show them, up to the block that the index has reached. A page looks through the 500 newest events of the agent, so it may be short and still have a next one.',
    query: z.object({ limit: pageLimit, cursor: tradeCursor.optional() }),
    output: z
      .object({ agentId: digits('Agent id'), events: z.array(ownerEvent), nextCursor, asOf, lagBlocks })
      .meta({ id: 'OwnerEvents' }),
  },
  async ({ history }: HistoryContext, { agentId, limit, cursor }, call) => {
    const { events, next, asOf, lagBlocks, rowsRead } = await history.ownerEvents({ agentId, limit, before: cursor })
    await chargeRowsRead(call, rowsRead)
    return {
      agentId: `${agentId}`,
      events: events.map(event => presentOwnerEvent(event) as z.input<typeof ownerEvent>),
      nextCursor: next ? presentTradeCursor(next) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

export const listOffers = defineOperation(
  {
    id: 'listOffers',
    path: '/agents/offered-to/{owner}',
    tag: 'Owners',
    summary: 'List the agents that are offered to an address',
    description:
      'Returns at most 20 agents whose owner offers them to an address now, the newest offer first. Offers are found in the index, among the 500 newest of all agents, and compared with the chain.',
    params: ownerParams,
    output: z
      .object({
        owner: addressOut.describe('The address that may accept'),
        offers: z.array(listedAgent),
        asOf,
      })
      .meta({ id: 'Offers' }),
    errors: [502, 503],
  },
  async ({ chain, history }: HistoryContext, { owner }, call) => {
    const controls = await readOwnerControls(chain)
    const { agents, asOf, rowsRead } = controls
      ? await history.offeredAgents(controls.verifyingContract, owner)
      : { agents: [], asOf: (await readTree(chain, [])).block, rowsRead: 0 }
    await chargeRowsRead(call, rowsRead)
    return {
      owner,
      offers: agents.map(presentListed),
      asOf: presentAsOf(asOf),
    }
  },
)

/** Returns the address that an agent is offered to; without an offer its owner, who may be repeating the acceptance. */
export const newOwnerOf = (terms: OwnerTerms) => terms.pendingOwner ?? ownerOf(terms)
