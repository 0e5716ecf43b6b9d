import { orderMessage } from '@agent-trading-service/protocol/order-typed-data'
import {
  type Domain,
  hashExits,
  isOrderMessage,
  isOwnerMessage,
  isWebhookMessage,
  type Message,
  type PrimaryType,
} from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import type { z } from 'zod'
import { getAgent } from '../chain/agents.ts'
import type { ChainContext } from '../chain/chain-context.ts'
import type { Block } from '../chain/configured-chain.ts'
import { addressOfReference } from '../chain/find-vault.ts'
import { getSigningTerms } from '../chain/read-intent-terms.ts'
import { getOrderTerms } from '../chain/read-order-terms.ts'
import { getConsentTerms, getOwnerTerms } from '../chain/read-owner-terms.ts'
import { getLinkTerms, getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { serviceDomain } from '../chain/signing-domains.ts'
import { tokenBySymbol } from '../chain/token-symbols.ts'
import { checkSignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { malformed } from '../errors/refuse.ts'
import { deadlineRefusal } from '../intents/deadline.ts'
import { ownerOf } from '../intents/owner-message.ts'
import { toExitRules } from '../resources/exit-rule.ts'
import { type OrderBody, toOrder } from '../resources/order-input.ts'
import { parseUsdc } from '../resources/primitives.ts'
import { parseMessage, verdict, verifyBody } from '../resources/signature-check.ts'
import { presentTypedData } from '../resources/typed-data.ts'
import { submitAddIntent } from './add-intents.ts'
import { cancelIntents } from './cancel.ts'
import { defineOperation } from './define-operation.ts'
import { linkERC8004 } from './erc8004.ts'
import { submitExitLadderIntent } from './exit-ladder-intents.ts'
import { lockFirstLoss } from './first-loss.ts'
import { type GivenMandate, setMandate, toMandate } from './mandate.ts'
import { cancelOrder, submitOrder } from './orders.ts'
import { acceptOwnership, newOwnerOf, offerOwnership } from './owner.ts'
import { submitReduceIntent } from './reduce-intents.ts'
import { registerAgent } from './register.ts'
import { setSigner } from './signer.ts'
import { stopAgent } from './stop.ts'
import { submitTradeIntent } from './trade-intents.ts'
import { changeWebhook, createWebhook, listWebhooks } from './webhooks.ts'

type VerifyRequest = z.output<typeof verifyBody>
/** The subjects of a message, as far as it names them. */
type MessageSubject = { agentId: bigint; agentIds?: readonly bigint[]; signer: Address; owner?: Address | undefined }
/** The on-chain values that a message is checked against. Messages about webhooks have no nonce. */
type SigningFacts = { block: Block; domain: Domain; signer: Address; nonce: bigint; vault?: Address }

export const verifySignedMessage = defineOperation(
  {
    id: 'verifySignature',
    method: 'post',
    path: '/signing/verify',
    tag: 'Signing',
    summary: 'Explain a signature',
    description:
      'Tells whether a signature is valid for a message, or for a body as it would be posted; and if not, which common mistake was made. Sends nothing and uses no nonce.',
    body: verifyBody,
    readsOnly: true,
    requestKind: 'signatureSearches',
    output: verdict,
  },
  async (context: Context, request, { client }) => {
    const { primaryType, signature } = request
    const { message, exits, facts } = request.intent
      ? await messageOfBody(context, request)
      : await messageOfRequest(context, request)
    const signer = request.signer ?? facts.signer
    const signed = { domain: facts.domain, primaryType, message, exits }
    let isBusy = false
    const maySearch = () => {
      isBusy = client?.maySearch({ isCounted: true }) === false // by its operation's rate limit
      return !isBusy
    }
    const { isValid, ...check } = await checkSignature(context.chain, signer, signed, signature, { maySearch })
    return {
      valid: isValid,
      primaryType,
      signer,
      ...check,
      warnings: [
        ...warningsOf(message, facts),
        ...(isBusy ? ['The service is busy and has not searched for a mistake; send the request again later.'] : []),
      ],
      typedData: presentTypedData(facts.domain, primaryType, message).typedData,
    }
  },
)

/** Returns the message as the request carries it. Throws INVALID_REQUEST. */
async function messageOfRequest(
  context: Context,
  { primaryType, message: given, exits: givenExits, signer }: VerifyRequest,
) {
  if (given === undefined) throw malformed('send message, or intent with agentId')
  const exits = givenExits && toExitRules(givenExits)
  const withHash = exits && given.exitsHash === undefined ? { ...given, exitsHash: hashExits(exits) } : given
  const message = parseMessage(primaryType, withHash)
  const facts = await readFacts(context, primaryType, { ...(message as unknown as MessageSubject), owner: signer })
  return { message, exits, facts }
}

/** Returns the message that a body would be verified against if it were posted. Throws INVALID_REQUEST. */
async function messageOfBody(context: Context, { primaryType, intent, agentId, signature }: VerifyRequest) {
  const { parse, toMessage } = bodies[primaryType]
  const { signature: _, ...body } = parse({
    ...intent,
    ...(agentId !== undefined && { agentId: `${agentId}` }),
    signature,
  })
  const facts = await readFacts(context, primaryType, body as MessageSubject)
  const exits = 'exits' in body ? toExitRules(body.exits as Parameters<typeof toExitRules>[0]) : undefined
  const message = await toMessage({ context, body, facts, exitsHash: exits && hashExits(exits) })
  return { message, exits, facts }
}

type SignedBody = {
  /** Parses the body as its operation does. Throws INVALID_REQUEST. */
  parse: (given: Record<string, unknown>) => Record<string, unknown>
  toMessage: (given: {
    context: Context
    body: Record<string, unknown>
    facts: SigningFacts
    exitsHash: Hex | undefined
  }) => Message | Promise<Message>
}

/** How the body of each operation becomes its signed message. */
const bodies: Record<PrimaryType, SignedBody> = {
  SelfRegister: {
    parse: registerAgent.parse,
    toMessage: async ({ context: { chain }, body, facts: { nonce } }) =>
      ({ ...body, vault: await addressOfReference(chain, body.vault as string), nonce }) as Message,
  },
  LinkERC8004: {
    parse: linkERC8004.parse,
    toMessage: ({ body, facts: { nonce } }) => ({ ...(body as Message), nonce }),
  },
  OpenPosition: {
    parse: submitTradeIntent.parse,
    toMessage: async ({ context, body: { symbol, exits: _, usdcAmount, ...rest }, facts: { vault }, exitsHash }) => {
      const token = await tokenBySymbol(context.chain, symbol as string)
      return { ...rest, vault, token, usdcAmount: parseUsdc(usdcAmount as string), exitsHash } as Message
    },
  },
  AddToPosition: {
    parse: submitAddIntent.parse,
    toMessage: ({ body }) => ({ ...body, usdcAmount: parseUsdc(body.usdcAmount as string) }) as Message,
  },
  ReducePosition: {
    parse: submitReduceIntent.parse,
    toMessage: ({ body }) => body as Message,
  },
  UpdateExitLadder: {
    parse: submitExitLadderIntent.parse,
    toMessage: ({ body: { exits: _, ...body }, exitsHash }) => ({ ...body, exitsHash }) as Message,
  },
  PlaceOrder: {
    parse: submitOrder.parse,
    toMessage: async ({ context, body }) => {
      const { agentId, ...given } = body as OrderBody & { agentId: bigint }
      const token = await tokenBySymbol(context.chain, given.symbol)
      return orderMessage({ ...toOrder(given, agentId), token })
    },
  },
  CancelOrder: { parse: cancelOrder.parse, toMessage: ({ body }) => body as Message },
  OwnAgent: {
    parse: given => registerAgent.parse({ ...given, ownerSignature: given.signature }),
    toMessage: async ({ context: { chain }, body: { owner: _, ownerSignature: __, ownerNonce, ...body } }) =>
      ({ ...body, vault: await addressOfReference(chain, body.vault as string), nonce: ownerNonce }) as Message,
  },
  OfferOwnership: { parse: offerOwnership.parse, toMessage: ({ body }) => body as Message },
  AcceptOwnership: { parse: acceptOwnership.parse, toMessage: toSignerMessage },
  SetSigner: { parse: setSigner.parse, toMessage: toSignerMessage },
  SetMandate: {
    parse: setMandate.parse,
    toMessage: async ({ context, body: { agentId, nonce, deadline, ...given } }) =>
      ({ agentId, ...(await toMandate(context.chain, given as GivenMandate)), nonce, deadline }) as Message,
  },
  StopBuying: { parse: stopAgent.parse, toMessage: ({ body }) => toStopMessage(body) },
  CloseAll: { parse: stopAgent.parse, toMessage: ({ body }) => toStopMessage(body) },
  CancelIntents: { parse: cancelIntents.parse, toMessage: ({ body }) => body as Message },
  LockFirstLoss: { parse: lockFirstLoss.parse, toMessage: ({ body }) => body as Message },
  CreateWebhook: { parse: createWebhook.parse, toMessage: ({ body }) => body as Message },
  ListWebhooks: { parse: listWebhooks.parse, toMessage: ({ body }) => body as Message },
  ManageWebhook: { parse: changeWebhook.parse, toMessage: ({ body }) => body as Message },
}

function toSignerMessage({ body: { newSigner, ...body } }: { body: Record<string, unknown> }) {
  return { ...body, signer: newSigner } as Message
}

const toStopMessage = ({ agentId, otherAgentIds = [], nonce, deadline }: Record<string, unknown>) =>
  ({ agentIds: [agentId, ...(otherAgentIds as bigint[])], nonce, deadline }) as Message

async function readFacts(
  { chain, trading, config }: ChainContext,
  primaryType: PrimaryType,
  { agentId, agentIds, signer, owner }: MessageSubject,
): Promise<SigningFacts> {
  if (primaryType === 'SelfRegister') {
    const { block, terms } = await getRegistrationTerms(chain, { signer })
    return { block, domain: terms.domain, signer, nonce: terms.signerNonce ?? 0n }
  }
  if (primaryType === 'LinkERC8004') {
    const { block, terms } = await getLinkTerms(chain, agentId)
    return { block, domain: terms.domain, signer: terms.agent.owner, nonce: terms.ownerNonce }
  }
  if (primaryType === 'OwnAgent') {
    if (owner === undefined) throw malformed('send signer: the owner, whom the message does not name')
    const { block, domain, nonce } = await getConsentTerms(chain, owner)
    return { block, domain, signer: owner, nonce }
  }
  if (isWebhookMessage(primaryType)) {
    const { block, agent } = await getAgent(chain, agentId)
    return { block, domain: serviceDomain(chain, config.serviceHosts[0]), signer: agent.signer, nonce: 0n }
  }
  if (isOwnerMessage(primaryType)) {
    const { block, terms } = await getOwnerTerms(chain, agentId ?? agentIds?.[0] ?? 0n)
    const { address, nonce } = primaryType === 'AcceptOwnership' ? newOwnerOf(terms) : ownerOf(terms)
    return { block, domain: terms.domain, signer: address, nonce }
  }
  const { block, domain, agent, nonce } = isOrderMessage(primaryType)
    ? await getOrderTerms(trading, agentId)
    : await getSigningTerms(trading, agentId)
  return { block, domain, signer: agent.signer, nonce, vault: agent.vault }
}

function warningsOf({ nonce, deadline }: Message, facts: SigningFacts): string[] {
  const refusal = deadlineRefusal(deadline as bigint, facts.block)
  return [
    ...(nonce === undefined || nonce === facts.nonce
      ? []
      : [`The nonce is ${nonce}; the next nonce is ${facts.nonce}.`]),
    ...(refusal ? [refusal.body.error] : []),
  ]
}
