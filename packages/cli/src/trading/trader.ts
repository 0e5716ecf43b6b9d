import {
  type Check,
  type components,
  createClient,
  type ExitRule,
  formatUsdc,
  type OrderType,
  type Pins,
  type Prepared,
  parseToken,
  parseUsdc,
  type TypedData,
} from '@agent-trading-service/client'
import { usdcText } from '@agent-trading-service/protocol/check-figures'
import { droppedRules } from '@agent-trading-service/protocol/exit-triggers'
import { isSameSymbol } from '@agent-trading-service/protocol/find-symbol'
import { isTicker, quoteText, type Term, termsOf, titleOf } from '@agent-trading-service/protocol/message-terms'
import { percentText } from '@agent-trading-service/protocol/percent'
import { type Address, isAddress, type TypedDataDefinition } from 'viem'
import { Failure } from '../failure.ts'
import type { Signer } from '../keys/signer.ts'
import { addressOf, createReader } from './create-reader.ts'
import { assertFee, createFeePayer, DEFAULT_MAX_FEE, type Fee, feeOf } from './fee-payer.ts'
import { findOutcomes } from './find-outcomes.ts'
import { createNonceFiles } from './nonce-files.ts'
import { assertNonePending, removePending, type Signatory, storePending } from './pending.ts'
import { type Extension, feePinsOf, pinFee, pinToken, symbolOfToken, withExtension } from './pins.ts'
import type { Plan } from './plan.ts'

export type { ExitRule }

const PRICE_DECIMALS = 8
const MAX_NOTE = 280

/** A ladder of our own, so that the service does not choose what is signed. */
const DEFAULT_EXITS: readonly ExitRule[] = [
  { triggerBps: -800, exitBps: 10_000 },
  { triggerBps: 1_500, exitBps: 10_000 },
]

type Agent = { agentId?: string | undefined }
type Noted = Agent & { note?: string | undefined }
export type TradeRequest = Noted & {
  symbol?: string | undefined
  positionId?: string | undefined
  usdcAmount?: string | undefined
  /** Instead of `usdcAmount`: the most that the stop-losses of the position may lose. */
  maxLossUsdc?: string | undefined
  /** With `maxLossUsdc`: the most to buy for. */
  maxUsdcAmount?: string | undefined
  exits?: readonly ExitRule[] | undefined
  maxSlippageBps?: number | undefined
}
/** A time in Unix seconds, or seconds from now. */
export type When = { at: bigint } | { in: bigint }
/** An order. Prices are in US dollars; `positionId` may be the symbol of an open position. */
export type OrderRequest = Noted & {
  /** Left out for a sale at a price: a stop below the oracle's present price, a take-profit above it. */
  type?: OrderType | undefined
  symbol?: string | undefined
  positionId?: string | undefined
  usdcAmount?: string | undefined
  exitBps?: number | undefined
  exits?: readonly ExitRule[] | undefined
  maxSlippageBps?: number | undefined
  price?: string | undefined
  trailBps?: number | undefined
  validAfter?: When | undefined
  validUntil?: When | undefined
  parts?: number | undefined
  /** Seconds. */
  interval?: string | undefined
  key?: string | undefined
}
export type MandateLimits = {
  maxTradeUsdc?: string | undefined
  maxDailyTurnoverUsdc?: string | undefined
  maxExposureUsdc?: string | undefined
  allowedTokens?: string[] | undefined
  validUntil?: string | undefined
}

/** The keys of this machine, locked. */
export type TraderKeys = {
  /** Returns the key that signs: the one that the user named, or the one with an address. */
  ofAddress(address: string): Signer
  /** Returns the key that a registration is for. */
  toRegister(): Signer
  /** Returns the key that owns an agent to register; undefined if that is the registered key. */
  toOwn(): Signer | undefined
  /** Returns the key that pays the registration fee. */
  toPay(): Signer
}

/**
 * What the keys of this machine can do at one service. Every method quotes and compares; nothing is signed before
 * `send` of the plan.
 */
export type Trader = ReturnType<typeof createTrader>

export function createTrader({
  home,
  url,
  timeout,
  rpc,
  pins,
  agentId: givenAgentId,
  keys,
  maxFee = DEFAULT_MAX_FEE,
}: {
  home: string
  url: string
  timeout?: number | undefined
  rpc?: string | undefined
  pins: Pins
  agentId?: string | undefined
  keys: TraderKeys
  maxFee?: string | undefined
}) {
  const clientWith = (known: Pins) =>
    createClient({
      ...addressOf({ url, timeout }),
      pins: known,
      onSubmission: submission => storePending(home, url, submission),
      onWarning: () => {}, // a plan shows them
      nonceStore: createNonceFiles(home),
      ...(rpc !== undefined && { rpcUrl: rpc }),
    })
  const client = clientWith(pins)
  /** Returns a client that also knows the contract of an extension. */
  const clientFor = async (extension: Extension) =>
    pins[extension] ? client : clientWith(await withExtension(home, url, client, extension))
  /** What the key can do as the owner of an agent. */
  const ownerOf = async (agentId: string) => (await clientFor('ownerControls')).owner(agentId)
  const planOf = <Q extends object, R>(prepared: Prepared<Q, R>, words: Words = {}) =>
    planWith(keys, prepared, { ...words, symbolOf: token => symbolOfToken(home, url, token) })
  let ownAgentId = givenAgentId

  const idOf = (agentId: string | undefined): string => {
    const id = agentId ?? ownAgentId
    if (id !== undefined) return id
    throw new Failure('usage', 'This needs the id of an agent.', {
      code: 'AGENT_MISSING',
      remedy: {
        command: 'Pass --agent, or set ATS_AGENT.',
        tool: 'Pass agentId. svc_list_agents_by_owner lists the agents of an owner; `register` creates one.',
      },
    })
  }

  /** Returns the id of the open position that a symbol names; digits are an id already. */
  async function positionIdOf(agentId: string, position: string): Promise<string> {
    if (/^\d+$/.test(position)) return position
    const { positions } = await client.listPositions({ agentId })
    const found = positions.filter(({ symbol }) => isSameSymbol(symbol, position))
    if (found.length === 1 && found[0]) {
      const token = await client.tokenOfPosition(found[0].positionId)
      if (token !== undefined) pinToken(home, url, found[0].symbol, token)
      return found[0].positionId
    }
    const nameAll = (named: typeof positions) =>
      named
        .map(({ positionId, symbol }) => `${isTicker(symbol) ? symbol : quoteText(symbol)} (${positionId})`)
        .join(', ')
    if (found.length > 1)
      throw new Failure('refused', `Agent ${agentId} has ${found.length} such open positions: ${nameAll(found)}.`, {
        code: 'POSITION_AMBIGUOUS',
        details: { positionIds: found.map(({ positionId }) => positionId) },
        remedy: 'Pass the id of the position.',
      })
    const open = nameAll(positions) || 'none'
    throw new Failure('refused', `Agent ${agentId} has no open position in ${position}; it has: ${open}.`, {
      code: 'POSITION_NOT_FOUND',
      remedy: 'Pass the symbol or the id of an open position. Positions are long only, so nothing else can be sold.',
    })
  }

  /** Throws while an earlier message is pending. Returns the same check for the moment of the signature. */
  function waitFor(signatory: Signatory): () => void {
    const assert = () => assertNonePending(home, url, signatory)
    assert()
    return assert
  }

  async function planTrade(request: TradeRequest): Promise<Plan> {
    const { symbol, positionId, maxLossUsdc, maxUsdcAmount, exits, maxSlippageBps, note } = request
    if ((symbol === undefined) === (positionId === undefined))
      throw new Failure('usage', 'Pass either symbol, to open a position, or positionId, to add to one.', {
        code: 'INVALID_REQUEST',
        remedy: 'Leave one of the two out.',
      })
    if (
      (request.usdcAmount === undefined) === (maxLossUsdc === undefined) ||
      (maxUsdcAmount !== undefined && maxLossUsdc === undefined)
    )
      throw new Failure(
        'usage',
        'A purchase is sized either by its amount or by the most that its stop-losses may lose.',
        {
          code: 'INVALID_REQUEST',
          remedy: {
            command: 'Pass the amount, or --max-loss, which --max-amount may bound.',
            tool: 'Pass either usdcAmount or maxLossUsdc, which maxUsdcAmount may bound.',
          },
        },
      )
    const agentId = idOf(request.agentId)
    const assertAlone = waitFor({ agentId })
    const size =
      request.usdcAmount === undefined
        ? { maxLossUsdc: `${maxLossUsdc}`, ...(maxUsdcAmount !== undefined && { maxUsdcAmount }) }
        : { usdcAmount: request.usdcAmount }
    const common = { ...size, ...(maxSlippageBps !== undefined && { maxSlippageBps }), ...noted(note) }
    if (positionId !== undefined) {
      if (exits !== undefined)
        throw new Failure('usage', 'A position that is added to keeps its exit ladder.', {
          code: 'INVALID_REQUEST',
          remedy: 'Leave exits out, and replace the ladder afterwards.',
        })
      const held = { positionId: await positionIdOf(agentId, positionId) }
      const prepared = await client.agent(agentId).prepareAdd({ ...common, ...held })
      const usdcAmount = formatUsdc(`${prepared.typedData.message.usdcAmount}`)
      const { symbol: bought, token } = prepared.quote.position
      const proven = await client.tokenOfPosition(held.positionId)
      pinToken(home, url, bought, proven ?? token)
      return planOf(prepared, {
        note,
        said: [{ name: 'token', value: bought }, ...purchaseFacts(prepared, usdcAmount), ...lossFacts(prepared.quote)],
        // Limits by symbol count only what a node confirms: the message names a position, not its token.
        spending: { usdc: parseUsdc(usdcAmount), symbol: proven && bought },
        assertAlone,
      })
    }
    const ladder = exits ?? DEFAULT_EXITS
    const prepared = await client.agent(agentId).prepareOpen({ ...common, symbol: symbol as string, exits: ladder })
    const usdcAmount = formatUsdc(`${prepared.typedData.message.usdcAmount}`)
    pinToken(home, url, symbol as string, `${prepared.typedData.message.token}`)
    return planOf(prepared, {
      note,
      exits: ladder,
      said: [...purchaseFacts(prepared, usdcAmount), ...lossFacts(prepared.quote)],
      spending: { usdc: parseUsdc(usdcAmount), symbol },
      assertAlone,
    })
  }

  async function planReduce(request: Noted & { positionId: string; exitBps: number }): Promise<Plan> {
    const { exitBps, note } = request
    const agentId = idOf(request.agentId)
    const assertAlone = waitFor({ agentId })
    const positionId = await positionIdOf(agentId, request.positionId)
    const prepared = await client.agent(agentId).prepareReduce({ positionId, exitBps, ...noted(note) })
    const { estimate, position } = prepared.quote
    return planOf(prepared, {
      note,
      said: [
        { name: 'token', value: position.symbol },
        ...(estimate?.usdcOut ? [{ name: 'proceeds', value: `about ${usdcOf(estimate.usdcOut)}` }] : []),
      ],
      reducesRisk: true,
      assertAlone,
    })
  }

  async function planLadder(request: Noted & { positionId: string; exits: readonly ExitRule[] }): Promise<Plan> {
    const { exits, note } = request
    const agentId = idOf(request.agentId)
    const assertAlone = waitFor({ agentId })
    const positionId = await positionIdOf(agentId, request.positionId)
    const prepared = await client.agent(agentId).prepareSetLadder({ positionId, exits, ...noted(note) })
    return planOf(prepared, {
      note,
      exits,
      said: [
        ...lossFacts(prepared.quote),
        ...droppedRules(prepared.quote.pendingRules, exits).map(({ triggerBps }) => ({
          name: triggerBps < 0 ? 'stop-loss that ends' : 'take-profit that ends',
          value: `at ${percentText(triggerBps)}`,
        })),
      ],
      assertAlone,
    })
  }

  async function planOrder({ agentId: given, note, ...request }: OrderRequest): Promise<Plan> {
    const agentId = idOf(given)
    const assertAlone = waitFor({ agentId })
    const positionId = request.positionId && (await positionIdOf(agentId, request.positionId))
    const isNew = positionId === undefined
    if (isNew === (request.symbol === undefined) || (!isNew && request.exits !== undefined))
      throw new Failure('usage', 'An order names either a symbol with a ladder, to open a position, or a position.', {
        code: 'INVALID_REQUEST',
        remedy: 'Leave one of the two out. A position that is added to keeps its ladder.',
      })
    const exits = isNew ? (request.exits ?? DEFAULT_EXITS) : undefined
    const symbol = isNew ? `${request.symbol}` : (await client.getPosition({ agentId, positionId })).position.symbol
    const [price] = Object.values((await client.getPrices({ symbols: symbol })).prices)
    const presentUsd = price?.quoted ? price.priceUsd : undefined
    const now = BigInt(await client.now())
    const { validAfter, validUntil, ...rest } = request
    const terms = {
      ...rest,
      type: request.type ?? saleTypeOf(request.price, presentUsd),
      positionId,
      exits,
      note,
      validAfter: validAfter && timeOf(validAfter, now),
      validUntil: validUntil && timeOf(validUntil, now),
    }
    const { orders } = (await clientFor('orderBook')).agent(agentId)
    // The client judges whether an order of its type may have these fields.
    const prepared = await orders.preparePlace(withoutAbsent(terms) as Parameters<typeof orders.preparePlace>[0])
    const { message } = prepared.typedData
    pinToken(home, url, symbol, `${message.token}`)
    const { usdcAmount } = request
    return planOf(prepared, {
      note,
      exits: exits ?? [],
      said: [
        ...(presentUsd === undefined ? [] : [{ name: 'price now', value: `${presentUsd} USD` }]),
        ...lossFacts(prepared.quote),
        ...executionFacts(prepared.quote.executionChecks),
      ],
      ...(usdcAmount === undefined
        ? { reducesRisk: true as const }
        : { spending: { usdc: parseUsdc(usdcAmount), symbol } }),
      assertAlone,
    })
  }

  /** Plans the cancellation of an order, which the first digits of its id name if it is open. */
  async function planCancelOrder({ agentId: given, orderId: named }: Agent & { orderId: string }): Promise<Plan> {
    const agentId = idOf(given)
    const assertAlone = waitFor({ agentId })
    const isWhole = /^0x[0-9a-fA-F]{64}$/.test(named)
    const orderId = isWhole ? named : await openOrderId(agentId, named)
    const { orders } = (await clientFor('orderBook')).agent(agentId)
    // Only for its words: an order is cancelled also while the service cannot describe it.
    const described = createReader({ url, timeout: 1 }).getOrder({ agentId, orderId })
    const [prepared, order] = await Promise.all([orders.prepareCancel({ orderId }), described.catch(() => undefined)])
    return planOf(prepared, {
      said: order === undefined ? [] : [{ name: 'it would', value: presentedTitle(order) }],
      assertAlone,
    })
  }

  /** Returns the id of the open order that begins with some digits. */
  async function openOrderId(agentId: string, digits: string): Promise<string> {
    const { orders } = await client.listOrders({ agentId, state: 'open' })
    const found = orders.filter(({ orderId }) => orderId.startsWith(digits.toLowerCase()))
    if (found.length === 1 && found[0]) return found[0].orderId
    const count = found.length === 0 ? 'No open order' : `${found.length} open orders`
    throw new Failure(
      'refused',
      `${count} of agent ${agentId} ${found.length === 0 ? 'has' : 'have'} an id that begins with ${digits}.`,
      {
        code: 'ORDER_NOT_FOUND',
        remedy: 'Pass the whole id; `ats orders -o json` lists the open ones.',
      },
    )
  }

  /** Plans a registration. The agent then is the one that requests mean which name none. */
  async function planRegistration(request: {
    vault: string
    name: string
    metadataURI?: string | undefined
  }): Promise<Plan> {
    const { vault, name, metadataURI } = request
    const signer = keys.toRegister()
    const payer = keys.toPay()
    const owner = keys.toOwn()
    const assertAlone = waitFor({ signer: signer.address })
    const prepared = await client.prepareRegister({
      vault,
      name,
      signer: signer.address,
      ...(metadataURI !== undefined && { metadataURI }),
      ...(owner && { owner: owner.address }),
    })
    const { consent } = prepared
    const fee = feeOf(prepared.quote, maxFee)
    const secondsAhead = Math.max(0, (await client.now()) - Math.floor(Date.now() / 1000))
    if (fee) assertFee(fee, feePinsOf(home, url), secondsAhead)
    return {
      title: titleOf(prepared.typedData),
      signer: prepared.signer,
      terms: [
        ...(consent ? [{ name: 'owned by', value: consent.owner }] : []),
        ...feeTerms(fee, payer.address, feePinsOf(home, url).asset),
        ...termsOf(prepared.typedData),
      ],
      checks: [],
      warnings: [],
      typedData: prepared.typedData,
      // By which the service knows the registration.
      digest: consent?.digest ?? prepared.digest,
      spending: { usdc: fee?.amount ?? 0n, registers: true },
      assertAlone,
      unlock: async () => [await signer.unlock(), await owner?.unlock()],
      async send() {
        const account = await signer.unlock()
        const feePayer = fee && (await createFeePayer(fee, payer, secondsAhead))
        if (fee) pinFee(home, url, fee)
        const signature = await account.signTypedData(definitionOf(prepared.typedData))
        const ownerSignature =
          consent && owner && (await (await owner.unlock()).signTypedData(definitionOf(consent.typedData)))
        const registered = await prepared.submit(signature, {
          payer: feePayer,
          ...(ownerSignature && { ownerSignature }),
        })
        ownAgentId = registered.agentId
        return registered
      },
    }
  }

  async function planMandate(
    request: Agent & MandateLimits & { mode: 'trade' | 'reduceOnly' | 'stopped' },
  ): Promise<Plan> {
    const { agentId: given, mode, ...limits } = request
    const agentId = idOf(given)
    const { allowedTokens } = limits
    const set = Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
    const prepared = await (await ownerOf(agentId)).prepareMandate({ mode, ...set })
    const tokens = prepared.typedData.message.allowedTokens as readonly string[]
    for (const [index, symbol] of (allowedTokens ?? []).entries())
      if (!isAddress(symbol, { strict: false })) pinToken(home, url, symbol, `${tokens[index]}`)
    return planOf(prepared)
  }

  async function planStop(request: Agent & { action: 'reduceOnly' | 'flatten' }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    return planOf(await (await ownerOf(agentId)).prepareStop({ action: request.action }), { reducesRisk: true })
  }

  async function planOffer(request: Agent & { newOwner: string }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    return planOf(await (await ownerOf(agentId)).prepareTransfer({ newOwner: request.newOwner as Address }))
  }

  async function planAcceptance(request: Agent & { newSigner: string }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    return planOf(await (await ownerOf(agentId)).prepareAcceptTransfer({ newSigner: request.newSigner as Address }))
  }

  async function planSigner(request: Agent & { newSigner: string }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    return planOf(await (await ownerOf(agentId)).prepareSetSigner({ newSigner: request.newSigner as Address }))
  }

  async function planCancel(request: Agent & { untilNonce: string }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    return planOf(await (await ownerOf(agentId)).prepareCancel({ untilNonce: request.untilNonce }))
  }

  async function planFirstLoss(request: Agent & { shares?: string | undefined }): Promise<Plan> {
    const agentId = idOf(request.agentId)
    const prepared = await (await ownerOf(agentId)).prepareLockFirstLoss(
      request.shares ? { shares: request.shares } : {},
    )
    return planOf(prepared)
  }

  /** Finds out what became of messages without a known outcome, wherever they were posted. */
  async function resume(digest: string | undefined) {
    const outcomes = await findOutcomes({ home, service: { url, timeout }, isUrlGiven: false, digest })
    for (const { row, isKnown } of outcomes) if (isKnown) removePending(home, `${row.digest}`)
    return { messages: outcomes.map(({ row }) => row) }
  }

  return {
    /** The agent that requests mean which name none: the given one, or the last one registered. */
    get agentId() {
      return ownAgentId
    },
    planTrade,
    planReduce,
    planLadder,
    planOrder,
    planCancelOrder,
    planRegistration,
    planMandate,
    planStop,
    planOffer,
    planAcceptance,
    planSigner,
    planCancel,
    planFirstLoss,
    resume,
  }
}

type Words = Pick<Plan, 'said' | 'spending' | 'assertAlone' | 'reducesRisk'> & {
  /** The ladder whose hash the message carries. */
  exits?: readonly ExitRule[]
  note?: string | undefined
}

/** Returns a prepared message as a plan. Checks were compared by the client; `sign` throws if one fails. */
function planWith<Q extends { warnings?: readonly string[] }, R>(
  keys: TraderKeys,
  prepared: Prepared<Q, R>,
  { exits, note, symbolOf, said = [], ...words }: Words & { symbolOf: (token: string) => string | undefined },
): Plan {
  const { typedData, digest, checks, quote } = prepared
  const signer = keys.ofAddress(prepared.signer)
  const remarks = quote.warnings ?? []
  return {
    ...words,
    title: titleOf(typedData),
    terms: [...termsOf(typedData, { symbolOf, exits }), ...noteTerms(note)],
    said: [...said, ...remarks.map(value => ({ name: 'warning', value }))],
    signer: prepared.signer,
    checks: checks as readonly Check[] as Plan['checks'],
    // After the service's own, those of the client.
    warnings: prepared.warnings.slice(remarks.length),
    typedData,
    digest,
    unlock: () => signer.unlock(),
    send: async () => prepared.submit(await prepared.sign(accountOf(signer))),
  }
}

/** An account that decrypts its key when it first signs. */
function accountOf(signer: Signer) {
  return {
    address: signer.address,
    signTypedData: async (typedData: never) => (await signer.unlock()).signTypedData(typedData),
  }
}

/** Returns typed data as viem signs it. */
function definitionOf({ types: { EIP712Domain: _, ...types }, ...typedData }: TypedData): TypedDataDefinition {
  return { ...typedData, types } as unknown as TypedDataDefinition
}

function feeTerms(fee: Fee | undefined, payer: string, usdc: Address | undefined): Term[] {
  if (fee === undefined) return [{ name: 'fee', value: 'none' }]
  const isUsdc = usdc !== undefined && fee.asset.toLowerCase() === usdc.toLowerCase()
  return [
    {
      name: 'fee',
      value: isUsdc ? `${formatUsdc(fee.amount)} USDC` : `${formatUsdc(fee.amount)} of ${fee.asset} on ${fee.network}`,
    },
    { name: 'paid by', value: payer },
    { name: 'paid to', value: fee.payTo },
  ]
}

type PricedPurchase = {
  quote: { estimate?: { priceUsd: string; priceImpactBps: number } | undefined; maxUsdcAmountHuman: string }
}

/** What a purchase costs, by the service. */
function purchaseFacts({ quote }: PricedPurchase, usdcAmount: string): Term[] {
  const { priceUsd, priceImpactBps } = quote.estimate ?? {}
  const cost = priceImpactBps === undefined ? 0n : shareOf(parseUsdc(usdcAmount), Math.max(0, priceImpactBps))
  return [
    ...(priceUsd === undefined ? [] : [{ name: 'price', value: `${priceUsd} USD` }]),
    ...(priceImpactBps === undefined ? [] : [{ name: 'cost', value: `about ${usdcText(cost)} USDC` }]),
    { name: 'largest amount', value: `${quote.maxUsdcAmountHuman} USDC` },
  ]
}

type LossAtStop = {
  lossAtStopUsdc?: string | undefined
  lossAtStopOfEquityBps?: number | undefined
  lossAtStopOfDailyLimitBps?: number | null | undefined
}

/** The most that the stop-losses of the whole position lose, gaps aside, by the service. */
function lossFacts({ lossAtStopUsdc, lossAtStopOfEquityBps, lossAtStopOfDailyLimitBps }: LossAtStop): Term[] {
  if (lossAtStopUsdc === undefined) return []
  const share = (name: string, bps: number | null | undefined) =>
    typeof bps === 'number' ? [{ name: `  of ${name}`, value: percentText(bps) }] : []
  return [
    { name: 'loss at the stop', value: `at most ${usdcOf(lossAtStopUsdc)}` },
    ...share('equity', lossAtStopOfEquityBps),
    ...share('the daily limit', lossAtStopOfDailyLimitBps),
  ]
}

/** Says whether the router would execute an order now, by the service. */
function executionFacts(checks: readonly Check[]): Term[] {
  const failed = checks.filter(({ pass }) => !pass)
  if (checks.length === 0) return []
  if (failed.length === 0) return [{ name: 'if it were due now', value: `passes all ${checks.length} rules` }]
  return failed.map(({ rule }) => ({ name: 'refused now by', value: rule }))
}

/** Says what an order of the service's list does. */
const presentedTitle = ({ side, symbol, usdcAmount, exitBps }: components['schemas']['Order']): string =>
  side === 'reduce' ? `sell ${percentText(exitBps)} of ${symbol}` : `buy ${symbol} for ${usdcOf(usdcAmount ?? '0')}`

/** Returns an amount in base units that the service names, which may be anything. */
const usdcOf = (baseUnits: string) =>
  /^-?\d{1,18}$/.test(baseUnits) ? `${usdcText(BigInt(baseUnits))} USDC` : baseUnits

/** Returns the type of a sale at a price: a stop below the present price, a take-profit above it. */
function saleTypeOf(price: string | undefined, presentUsd: string | undefined): OrderType {
  if (price !== undefined && presentUsd !== undefined)
    return parseToken(price, PRICE_DECIMALS) <= parseToken(presentUsd, PRICE_DECIMALS) ? 'stop' : 'takeProfit'
  throw new Failure('refused', 'The oracle has no price, so it cannot tell a stop from a take-profit.', {
    code: 'TOKEN_NOT_QUOTED',
    remedy: { command: 'Pass --below or --above in place of --at.', tool: 'Pass type.' },
  })
}

const timeOf = (when: When, now: bigint): bigint => ('at' in when ? when.at : now + when.in)

/** Returns an object without the fields that are undefined. */
const withoutAbsent = (value: object) =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined))

const shareOf = (amount: bigint, bps: number) => (amount * BigInt(bps)) / 10_000n

const noted = (note: string | undefined) => (note === undefined ? {} : { note })

const noteTerms = (note: string | undefined): Term[] =>
  note === undefined ? [] : [{ name: 'note, not signed', value: quoteText(note, MAX_NOTE) }]
