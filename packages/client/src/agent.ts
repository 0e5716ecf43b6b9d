import { toContractRules } from '@agent-trading-service/protocol/exit-rule'
import {
  PERCENT_TEXT,
  percentToBps,
  STOP_PERCENT_TEXT,
  stopPercentToBps,
  wholeExits,
} from '@agent-trading-service/protocol/percent'
import { lossAtStopUsdc, type StoppedPosition } from '@agent-trading-service/protocol/stop-loss'
import { formatUsdc, type Integer, toDigits, toUsdcUnits, type UsdcAmount } from './amounts.ts'
import { boundRequired, UntrustedQuoteError, ValidationError } from './errors.ts'
import type { components, operations } from './generated/openapi.ts'
import { fillPath } from './http.ts'
import { type ClientContext, type MessageOptions, type MessageRequest, type Prepared, prepare } from './prepare.ts'
import type { ReadId, ReadOutput } from './reads.ts'
import { type ExitRule, exitRulesOf, hashExits } from './typed-data.ts'

export type IntentReceipt = components['schemas']['IntentReceipt']
export type WhatIf = components['schemas']['WhatIf']
export type WhatIfRequest = NonNullable<operations['whatIf']['requestBody']>['content']['application/json']

export type TradeOptions = MessageOptions & {
  /** Why you trade, for everybody to read with the trade: at most 280 visible characters. It is not signed. */
  note?: string
}
type Purchase = PurchaseLimits & { usdcAmount: UsdcAmount }
/**
 * `maxLossUsdc` is the most that the stop-losses of the whole position may lose, gaps in the price aside; it sizes the
 * trade. `maxUsdcAmount` is the most to buy for. Adding to a position needs it unless there is a node, which knows cost
 * and stops.
 */
type Size = { usdcAmount: UsdcAmount } | { maxLossUsdc: UsdcAmount; maxUsdcAmount?: UsdcAmount }
type PurchaseLimits = TradeOptions & {
  /** The fewest tokens to accept, in the token's base units; 0 by default, then only the slippage limits the price. */
  minTokenOut?: Integer
  /** The largest shortfall against the oracle's value, in basis points; 100 by default. */
  maxSlippageBps?: number
}
/** Such as `8` or `'2.5'`; with more than two decimals it is refused, never rounded. */
export type Percent = string | number
/** Each rule in percent sells everything. */
export type Ladder =
  | { exits: readonly ExitRule[] }
  | { stopLossPercent: Percent; takeProfitPercent?: Percent }
  | { takeProfitPercent: Percent }
export type OpenRequest = PurchaseLimits & { symbol: string } & Size & Ladder
export type AddRequest = PurchaseLimits & { positionId: Integer } & Size
/** `exitBps` is the share of the remaining tokens to sell; 10000 closes the position. */
export type ReduceRequest = TradeOptions & { positionId: Integer; exitBps: number }
export type CloseRequest = TradeOptions & { positionId: Integer }
export type LadderRequest = TradeOptions & { positionId: Integer } & Ladder

type Preparing<Quote extends ReadId> = Promise<Prepared<ReadOutput<Quote>, IntentReceipt>>

const CLOSE_BPS = 10_000
const DEFAULT_SLIPPAGE_BPS = 100

/**
 * What an agent's signer does: each method quotes, compares, checks, signs and submits; `prepare…` stops before
 * signing. Concurrent calls for one agent run one after another, because each takes the agent's next nonce.
 * @example
 * const prepared = await agent.prepareClose({ positionId: '3' })
 * await prepared.submit(await wallet.signTypedData(prepared.typedData))
 */
export function createAgent(context: ClientContext, id: Integer) {
  const agentId = toDigits(id, 'agentId')
  const { deployment } = context

  async function quoteIntent<Quote extends ReadId>(segment: string, request: IntentFields): Preparing<Quote> {
    const path = `/agents/{agentId}/${segment}`
    return prepare(context, {
      kind: 'intent',
      primaryType: request.primaryType,
      message: { agentId, ...request.message },
      nonceHolder: { agentId },
      body: request.body,
      unsigned: request.unsigned,
      quote: { path: `${path}/quote`, query: request.query },
      submit: { method: 'POST', path },
      pathValues: { agentId },
      deadline: request.deadline,
    })
  }

  /**
   * Returns the amount to buy for: the given one, or what the service names for a loss, unless the stops would lose
   * more.
   */
  async function amountOf(
    request: PurchaseLimits & Size,
    segment: string,
    query: Record<string, string>,
    readPosition: () => Promise<StoppedPosition>,
  ): Promise<UsdcAmount> {
    if (!('maxLossUsdc' in request)) return request.usdcAmount
    if ('usdcAmount' in request)
      throw new ValidationError('INVALID_REQUEST', 'usdcAmount and maxLossUsdc both size the trade; pass one of them.')
    const maxLoss = toUsdcUnits(request.maxLossUsdc)
    const sized = { ...query, maxLossUsdc: formatUsdc(maxLoss), maxSlippageBps: request.maxSlippageBps }
    const [{ body }, { usdcCostBasis, exits }] = await Promise.all([
      context.http.get<ReadOutput<'getTradeIntentQuote' | 'getAddIntentQuote'>>(
        fillPath(`/agents/{agentId}/${segment}/quote`, { agentId, ...sized }),
      ),
      readPosition(),
    ])
    const named = toUsdcUnits(body?.usdcAmount ?? '')
    const most = request.maxUsdcAmount === undefined ? named : toUsdcUnits(request.maxUsdcAmount)
    const usdcAmount = named < most ? named : most
    // The service also counts the floor of its trade policy, which the client does not know for certain.
    const loss = lossAtStopUsdc({ usdcCostBasis: usdcCostBasis + usdcAmount, exits }, 0n)
    if (loss !== undefined && loss <= maxLoss) return usdcAmount
    const expected = `an amount whose stop-losses lose at most ${formatUsdc(maxLoss)} USDC`
    throw new UntrustedQuoteError('QUOTE_USDC_AMOUNT_MISMATCH', [
      { field: 'usdcAmount', given: formatUsdc(usdcAmount), expected },
    ])
  }

  async function prepareOpen(request: OpenRequest): Preparing<'getTradeIntentQuote'> {
    const exits = ladderOf(request)
    const query = { symbol: request.symbol, exits: formatExits(exits) }
    const usdcAmount = await amountOf(request, 'trade-intents', query, async () => ({
      usdcCostBasis: 0n,
      exits: toContractRules(exits),
    }))
    const purchase = purchaseOf({ ...request, usdcAmount })
    const [vault, { symbol, token }] = await Promise.all([
      deployment.vaultOf(agentId),
      deployment.tokenOf(request.symbol, agentId),
    ])
    return quoteIntent<'getTradeIntentQuote'>('trade-intents', {
      primaryType: 'OpenPosition',
      message: { vault, token, ...purchase.message, exitsHash: hashExits(exits) },
      body: { symbol, ...purchase.body, exits: exitRulesOf(exits) },
      query: { ...query, symbol, ...purchase.body },
      unsigned: unsignedOf(request),
      deadline: deadlineOf(request),
    })
  }

  async function prepareAdd(request: AddRequest): Preparing<'getAddIntentQuote'> {
    const positionId = toDigits(request.positionId, 'positionId')
    const usdcAmount = await amountOf(request, 'add-intents', { positionId }, async () => {
      const held = await deployment.positionOf(positionId)
      if (held) return held
      if (!('maxUsdcAmount' in request) || request.maxUsdcAmount === undefined)
        throw boundRequired('maxUsdcAmount', 'what the position has cost')
      const { position } = await context.http.get<ReadOutput<'getPosition'>>(
        fillPath('/agents/{agentId}/positions/{positionId}', { agentId, positionId }),
      )
      return { usdcCostBasis: BigInt(position.usdcCostBasis), exits: toContractRules(position.pendingRules) }
    })
    const purchase = purchaseOf({ ...request, usdcAmount })
    return quoteIntent<'getAddIntentQuote'>('add-intents', {
      primaryType: 'AddToPosition',
      message: { positionId, ...purchase.message },
      body: { positionId, ...purchase.body },
      query: { positionId, ...purchase.body },
      unsigned: unsignedOf(request),
      deadline: deadlineOf(request),
    })
  }

  async function prepareReduce(request: ReduceRequest): Preparing<'getReduceIntentQuote'> {
    const fields = {
      positionId: toDigits(request.positionId, 'positionId'),
      exitBps: toBps(request.exitBps, 'exitBps'),
    }
    return quoteIntent<'getReduceIntentQuote'>('reduce-intents', {
      primaryType: 'ReducePosition',
      message: fields,
      body: fields,
      query: fields,
      unsigned: unsignedOf(request),
      deadline: deadlineOf(request),
    })
  }

  const prepareClose = (request: CloseRequest) => prepareReduce({ ...request, exitBps: CLOSE_BPS })

  async function prepareSetLadder(request: LadderRequest): Preparing<'getExitLadderIntentQuote'> {
    const positionId = toDigits(request.positionId, 'positionId')
    const exits = ladderOf(request)
    return quoteIntent<'getExitLadderIntentQuote'>('exit-ladder-intents', {
      primaryType: 'UpdateExitLadder',
      message: { positionId, exitsHash: hashExits(exits) },
      body: { positionId, exits: exitRulesOf(exits) },
      query: { positionId, exits: formatExits(exits) },
      unsigned: unsignedOf(request),
      deadline: deadlineOf(request),
    })
  }

  const trade = <Quote>(prepareTrade: () => Promise<Prepared<Quote, IntentReceipt>>) =>
    context.inTurn(agentId, async () => signAndSubmit(await prepareTrade()))

  return {
    agentId,
    prepareOpen,
    prepareAdd,
    prepareReduce,
    prepareClose,
    prepareSetLadder,
    /**
     * Opens a position with an exit ladder.
     * @example
     * await agent.open({ symbol: 'NVDA', usdcAmount: '250.5', exits: [{ triggerBps: -800, exitBps: 10_000 }] })
     * await agent.open({ symbol: 'NVDA', maxLossUsdc: '20', stopLossPercent: '8', takeProfitPercent: '15' })
     */
    open: (request: OpenRequest) => trade(() => prepareOpen(request)),
    /**
     * Adds to a position; its ladder stays.
     * @example
     * await agent.add({ positionId: '3', usdcAmount: '100' })
     * await agent.add({ positionId: '3', maxLossUsdc: '40' }) // so that the stops of the whole position lose no more
     */
    add: (request: AddRequest) => trade(() => prepareAdd(request)),
    /**
     * Sells a share of a position.
     * @example
     * await agent.reduce({ positionId: '3', exitBps: 2_500 }) // a quarter
     */
    reduce: (request: ReduceRequest) => trade(() => prepareReduce(request)),
    /**
     * Sells a whole position.
     * @example
     * await agent.close({ positionId: '3' })
     */
    close: (request: CloseRequest) => trade(() => prepareClose(request)),
    /**
     * Replaces the pending exit rules of a position.
     * @example
     * await agent.setLadder({ positionId: '3', exits: [{ triggerBps: -300, exitBps: 10_000 }] })
     */
    setLadder: (request: LadderRequest) => trade(() => prepareSetLadder(request)),
    /**
     * Shows what would happen at other prices and after intents, in their order. Signs and sends nothing.
     * @example
     * const { after, exits } = await agent.whatIf({ prices: { NVDA: '110' } })
     */
    whatIf: (body: WhatIfRequest) =>
      context.http.once<WhatIf>(fillPath('/agents/{agentId}/what-if', { agentId }), { method: 'POST', body }),
  }
}

type IntentFields = Pick<MessageRequest, 'primaryType' | 'message' | 'body' | 'unsigned' | 'deadline'> & {
  query: MessageRequest['quote']['query']
}

/** Signs with the client's account and submits. Throws CHECKS_FAILED before signing if a check fails. */
export async function signAndSubmit<Quote, Receipt>(prepared: Prepared<Quote, Receipt>): Promise<Receipt> {
  return prepared.submit(await prepared.sign())
}

/** Returns the note of a trade, if it has one. The service judges its text. */
export const unsignedOf = ({ note }: TradeOptions) => (note === undefined ? undefined : { note })

/** Returns the requested deadline as digits. */
export const deadlineOf = ({ deadline }: MessageOptions) =>
  deadline === undefined ? undefined : toDigits(deadline, 'deadline')

function purchaseOf(request: Purchase) {
  const units = toUsdcUnits(request.usdcAmount)
  const minTokenOut = toDigits(request.minTokenOut ?? 0n, 'minTokenOut')
  const maxSlippageBps = toBps(request.maxSlippageBps ?? DEFAULT_SLIPPAGE_BPS, 'maxSlippageBps', 0)
  return {
    message: { usdcAmount: `${units}`, minTokenOut, maxSlippageBps },
    body: { usdcAmount: formatUsdc(units), minTokenOut, maxSlippageBps },
  }
}

export function toBps(value: number, field: string, min = 1): number {
  if (Number.isInteger(value) && value >= min && value <= CLOSE_BPS) return value
  throw new ValidationError(
    'INVALID_REQUEST',
    `${field} is ${value}; pass whole basis points from ${min} to ${CLOSE_BPS}.`,
  )
}

/** Returns the ladder that a request describes, as rules or in percent. Throws a `ValidationError`. */
export function ladderOf(request: Ladder): readonly ExitRule[] {
  const {
    exits,
    stopLossPercent: stop,
    takeProfitPercent: take,
  } = request as { exits?: readonly ExitRule[]; stopLossPercent?: Percent; takeProfitPercent?: Percent }
  if (stop === undefined && take === undefined) return assertLadder(exits ?? [])
  if (exits !== undefined)
    throw new ValidationError('INVALID_REQUEST', 'exits and percent both say where to sell; pass one of them.')
  return wholeExits(
    stop === undefined ? undefined : bpsOf('stopLossPercent', stop, stopPercentToBps, STOP_PERCENT_TEXT),
    take === undefined ? undefined : bpsOf('takeProfitPercent', take, percentToBps, PERCENT_TEXT),
  )
}

export function bpsOf(field: string, percent: unknown, toBps: typeof percentToBps, accepted: string): number {
  const bps = toBps(`${percent}`)
  if (bps !== undefined) return bps
  throw new ValidationError('INVALID_REQUEST', `${field} is ${percent}; it must be ${accepted}.`)
}

function assertLadder(exits: readonly ExitRule[]): readonly ExitRule[] {
  if (!Array.isArray(exits) || exits.length === 0)
    throw new ValidationError('INVALID_REQUEST', 'exits is empty; pass at least one rule.', {
      remedy: 'For example [{ triggerBps: -800, exitBps: 10000 }]: a stop-loss at -8 % that sells everything.',
    })
  for (const { triggerBps, exitBps } of exits) {
    toBps(exitBps, 'exitBps')
    if (!Number.isSafeInteger(triggerBps) || triggerBps === 0)
      throw new ValidationError('INVALID_REQUEST', `triggerBps is ${triggerBps}; pass whole basis points, not 0.`)
  }
  return exits
}

/**
 * Returns a ladder as `triggerBps:exitBps` pairs.
 * @example
 * formatExits([{ triggerBps: -800, exitBps: 10_000 }]) // '-800:10000'
 */
export const formatExits = (exits: readonly ExitRule[]): string =>
  exits.map(({ triggerBps, exitBps }) => `${triggerBps}:${exitBps}`).join(',')

/**
 * Parses a ladder such as `-800:10000,1500:5000`. Throws a `ValidationError`.
 * @example
 * parseExits('-800:10000') // [{ triggerBps: -800, exitBps: 10_000 }]
 */
export function parseExits(text: string): ExitRule[] {
  return text.split(',').map(pair => {
    const [, triggerBps, exitBps] = /^\s*(-?\d{1,9}):(\d{1,9})\s*$/.exec(pair) ?? []
    if (triggerBps === undefined || exitBps === undefined)
      throw new ValidationError('INVALID_REQUEST', `${pair} is not an exit rule; write it as triggerBps:exitBps.`)
    return { triggerBps: Number(triggerBps), exitBps: Number(exitBps) }
  })
}
