import { type Address, getAddress, isAddress } from 'viem'
import type { Account } from './account.ts'
import { deadlineOf, signAndSubmit } from './agent.ts'
import { formatUsdc, type Integer, toDigits, toUsdcUnits, type UsdcAmount } from './amounts.ts'
import { boundRequired, ValidationError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { type ClientContext, type MessageOptions, type MessageRequest, type Prepared, prepare } from './prepare.ts'
import type { ReadId, ReadOutput, Reads } from './reads.ts'
import type { Message } from './typed-data.ts'
import { createWebhooks } from './webhooks.ts'

type Schemas = components['schemas']
export type OwnerReceipt = Schemas['OwnerMessageReceipt']
export type LinkReceipt = Schemas['Erc8004Link']

export type MandateMode = 'trade' | 'reduceOnly' | 'stopped'
/** A limit that is left out is no limit: a new mandate replaces the whole old one. */
export type MandateRequest = MessageOptions & {
  mode: MandateMode
  maxTradeUsdc?: UsdcAmount
  maxDailyTurnoverUsdc?: UsdcAmount
  maxExposureUsdc?: UsdcAmount
  /** Symbols or addresses. */
  allowedTokens?: readonly string[]
  /** The last second in which the agent may buy, in Unix seconds. */
  validUntil?: Integer
}
export type StopRequest = MessageOptions & {
  /** `reduceOnly` stops buying; `flatten` also sells every position. */
  action: 'reduceOnly' | 'flatten'
  /** Further agents of the same owner, which the same signature stops. */
  otherAgentIds?: readonly Integer[]
}
export type TransferRequest = MessageOptions & { newOwner: Address }
/** `newSigner` is the key that trades for the agent from then on. */
export type SignerRequest = MessageOptions & { newSigner: Address }
/** Without `untilNonce`, the next intent is voided; only a node says which one that is. */
export type CancelRequest = MessageOptions & { untilNonce?: Integer }
/** Without `shares`, as many as the next track requires; only a node says how many these are. */
export type LockFirstLossRequest = MessageOptions & { shares?: Integer }
export type LinkRequest = MessageOptions & { erc8004AgentId: Integer }

type Preparing<Quote extends ReadId, Receipt = OwnerReceipt> = Promise<Prepared<ReadOutput<Quote>, Receipt>>

const MODES: Record<MandateMode, number> = { trade: 0, reduceOnly: 1, stopped: 2 }
const LIMITS = ['maxTradeUsdc', 'maxDailyTurnoverUsdc', 'maxExposureUsdc'] as const

/** What an agent's owner signs. `account` is the owner's; without it, the client's account signs. */
export function createOwner(context: ClientContext, reads: Reads, id: Integer, account: Account | undefined) {
  const agentId = toDigits(id, 'agentId')
  const { deployment } = context
  const own: ClientContext = { ...context, account: account ?? context.account }

  type Fields = Pick<MessageRequest, 'primaryType' | 'message' | 'body'> & {
    query: MessageRequest['quote']['query']
    method?: 'PUT'
  }
  /** Prepares a message of the owner, or of whom the agent is offered to: the quote says who that is. */
  async function quoteMessage<Quote extends ReadId>(
    segment: string,
    fields: Fields,
    options: MessageOptions,
  ): Preparing<Quote> {
    const path = `/agents/{agentId}/${segment}`
    return prepare(own, {
      kind: 'owner',
      primaryType: fields.primaryType,
      message: fields.message,
      body: fields.body,
      quote: { path: `${path}/quote`, query: fields.query },
      submit: { method: fields.method ?? 'POST', path },
      pathValues: { agentId },
      deadline: deadlineOf(options),
    })
  }

  async function prepareMandate(request: MandateRequest): Preparing<'getMandateQuote'> {
    const { mode, allowedTokens } = request
    const tokens = allowedTokens && (await Promise.all(allowedTokens.map(tokenOf)))
    const limits = LIMITS.map(name => [name, request[name] === undefined ? 0n : toUsdcUnits(request[name])] as const)
    const given = limits.filter(([, units]) => units > 0n).map(([name, units]) => [name, formatUsdc(units)] as const)
    const validUntil = request.validUntil === undefined ? undefined : toDigits(request.validUntil, 'validUntil')
    const common = { mode, ...Object.fromEntries(given), ...(validUntil !== undefined && { validUntil }) }
    const message: Message = {
      agentId,
      mode: MODES[mode],
      ...Object.fromEntries(limits.map(([name, units]) => [name, `${units}`])),
      allowedTokens: tokens ?? [],
      validUntil: validUntil ?? '0',
    }
    return quoteMessage<'getMandateQuote'>(
      'mandate',
      {
        primaryType: 'SetMandate',
        message,
        body: { ...common, ...(tokens && { allowedTokens: tokens }) },
        query: { ...common, ...(tokens && { allowedTokens: tokens.join(',') }) },
        method: 'PUT',
      },
      request,
    )
  }

  async function tokenOf(token: string): Promise<Address> {
    return isAddress(token, { strict: false }) ? getAddress(token) : (await deployment.tokenOf(token, agentId)).token
  }

  async function prepareStop(request: StopRequest): Preparing<'getStopQuote'> {
    const { action } = request
    const others = (request.otherAgentIds ?? []).map(other => toDigits(other, 'otherAgentIds'))
    return quoteMessage<'getStopQuote'>(
      'stop',
      {
        primaryType: action === 'flatten' ? 'CloseAll' : 'StopBuying',
        message: { agentIds: [agentId, ...others] },
        body: { action, ...(others.length > 0 && { otherAgentIds: others }) },
        query: { action, ...(others.length > 0 && { otherAgentIds: others.join(',') }) },
      },
      request,
    )
  }

  async function prepareTransfer(request: TransferRequest): Preparing<'getOwnershipQuote'> {
    const fields = { newOwner: addressOf(request.newOwner, 'newOwner') }
    const message = { agentId, ...fields }
    return quoteMessage<'getOwnershipQuote'>(
      'owner',
      { primaryType: 'OfferOwnership', message, body: fields, query: fields },
      request,
    )
  }

  async function prepareAcceptTransfer(request: SignerRequest): Preparing<'getAcceptanceQuote'> {
    const fields = { newSigner: addressOf(request.newSigner, 'newSigner') }
    const message = { agentId, signer: fields.newSigner }
    return quoteMessage<'getAcceptanceQuote'>(
      'owner/acceptance',
      { primaryType: 'AcceptOwnership', message, body: fields, query: fields },
      request,
    )
  }

  async function prepareSetSigner(request: SignerRequest): Preparing<'getSignerQuote'> {
    const fields = { newSigner: addressOf(request.newSigner, 'newSigner') }
    const message = { agentId, signer: fields.newSigner }
    return quoteMessage<'getSignerQuote'>(
      'signer',
      { primaryType: 'SetSigner', message, body: fields, query: fields },
      request,
    )
  }

  async function prepareCancel(request: CancelRequest = {}): Preparing<'getCancelQuote'> {
    const nonce = request.untilNonce === undefined && (await deployment.nonceOf('tradeRouter', { agentId }))
    const next = request.untilNonce ?? (typeof nonce === 'bigint' ? nonce + 1n : undefined)
    if (next === undefined) throw boundRequired('untilNonce', 'which intent is next')
    const fields = { untilNonce: toDigits(next, 'untilNonce') }
    const message = { agentId, ...fields }
    return quoteMessage<'getCancelQuote'>(
      'cancel',
      { primaryType: 'CancelIntents', message, body: fields, query: fields },
      request,
    )
  }

  async function prepareLockFirstLoss(request: LockFirstLossRequest = {}): Preparing<'getFirstLossQuote'> {
    const shares = request.shares ?? (await deployment.requiredShares(agentId))
    if (shares === undefined) throw boundRequired('shares', 'how many shares the next track requires')
    const fields = { shares: toDigits(shares, 'shares') }
    const message = { agentId, ...fields }
    return quoteMessage<'getFirstLossQuote'>(
      'first-loss',
      { primaryType: 'LockFirstLoss', message, body: fields, query: fields },
      request,
    )
  }

  async function prepareLinkErc8004(request: LinkRequest): Preparing<'getErc8004LinkQuote', LinkReceipt> {
    const fields = { erc8004AgentId: toDigits(request.erc8004AgentId, 'erc8004AgentId') }
    const path = '/agents/{agentId}/erc8004/link'
    return prepare(own, {
      kind: 'link',
      primaryType: 'LinkERC8004',
      message: { agentId, ...fields },
      signer: getAddress((await reads.getAgent({ agentId })).agent.owner),
      body: fields,
      bodyHasNonce: false,
      quote: { path: `${path}/quote`, query: fields },
      submit: { method: 'POST', path },
      pathValues: { agentId },
      deadline: deadlineOf(request),
    })
  }

  return {
    agentId,
    prepareMandate,
    prepareStop,
    prepareTransfer,
    prepareAcceptTransfer,
    prepareSetSigner,
    prepareCancel,
    prepareLockFirstLoss,
    prepareLinkErc8004,
    /**
     * Replaces the whole mandate: what the agent may do.
     * @example
     * await owner.setMandate({ mode: 'trade', maxTradeUsdc: '500', allowedTokens: ['NVDA', 'AAPL'] })
     */
    setMandate: async (request: MandateRequest) => signAndSubmit(await prepareMandate(request)),
    /**
     * Stops buying, or also sells every position.
     * @example
     * await owner.stop({ action: 'flatten' })
     */
    stop: async (request: StopRequest) => signAndSubmit(await prepareStop(request)),
    /**
     * Offers the agent to a new owner; nothing changes before it is accepted. The zero address withdraws the offer.
     * @example
     * await owner.transfer({ newOwner: '0x…' })
     */
    transfer: async (request: TransferRequest) => signAndSubmit(await prepareTransfer(request)),
    /**
     * Takes an agent that is offered to this account, and names the key that trades for it.
     * @example
     * await owner.acceptTransfer({ newSigner: '0x…' })
     */
    acceptTransfer: async (request: SignerRequest) => signAndSubmit(await prepareAcceptTransfer(request)),
    /**
     * Replaces the key that trades for the agent.
     * @example
     * await owner.setSigner({ newSigner: '0x…' })
     */
    setSigner: async (request: SignerRequest) => signAndSubmit(await prepareSetSigner(request)),
    /**
     * Voids intents that the agent has signed and that are not mined yet.
     * @example
     * await owner.cancel()
     */
    cancel: async (request?: CancelRequest) => signAndSubmit(await prepareCancel(request)),
    /**
     * Makes vault shares of the owner answer for the agent's losses; without a number, as many as the next track
     * requires.
     * @example
     * await owner.lockFirstLoss()
     */
    lockFirstLoss: async (request?: LockFirstLossRequest) => signAndSubmit(await prepareLockFirstLoss(request)),
    /**
     * Links the agent to an ERC-8004 identity of its owner.
     * @example
     * await owner.linkErc8004({ erc8004AgentId: '42' })
     */
    linkErc8004: async (request: LinkRequest) => signAndSubmit(await prepareLinkErc8004(request)),
    /** Webhooks that only the owner sees and changes. */
    webhooks: createWebhooks(own, id),
  }
}

function addressOf(value: string, field: string): Address {
  if (isAddress(value)) return getAddress(value)
  throw new ValidationError('INVALID_REQUEST', `${field} is ${value}; pass a checksummed address.`)
}
