import type { OrderRecord } from '@agent-trading-service/protocol/order-record'
import { triggerPrice } from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import { ORDER_CONDITIONS, ORDER_SIDES } from '@agent-trading-service/protocol/order-types'
import { formatUnits } from 'viem'
import { z } from 'zod'
import type { OrderState } from '../chain/read-order-terms.ts'
import type { Refusal, RefusalBody } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { exitRule, presentExitRule } from './exit-rule.ts'
import { check, lossAtStopFields, quoteFields } from './intent-quote.ts'
import { present } from './present.ts'
import { ORACLE_DECIMALS } from './price.ts'
import {
  addressOut,
  amount,
  asOf,
  bps,
  digits,
  hashOut,
  lagBlocks,
  nextCursor,
  noteOut,
  txHash,
  unixSeconds,
  usdc,
} from './primitives.ts'
import { typedDataSchemas } from './typed-data.ts'

const MAX_BPS = 10_000

const states = ['open', 'partlyFilled', 'executing', 'filled', 'cancelled', 'expired', 'failed'] as const
/** In the contract's order. */
export const endReasons = ['cancelled', 'replaced', 'expired', 'voided', 'positionClosed'] as const

export const orderId = txHash.meta({
  description: 'Order id: the EIP-712 digest that was signed',
  example: `0x${'4d'.repeat(32)}`,
})

/** What the fields of an order mean. */
export const ORDER_MEANINGS = {
  exitBps: 'Reduction: share of the position that all parts sell together; bps',
  maxSlippageBps: "Purchase: furthest below the oracle's value when it executes; bps",
  price:
    'What the oracle must post: at most this for a limit or a stop, at least this for a breakout or a takeProfit. Of a trailing stop, the price that activates it',
  trailBps: 'Distance of a trailing stop from the highest price since placing; bps',
  validAfter: 'Not executed before',
  validUntil: 'Not executed after',
  parts: 'Executed in this many equal parts, 1 to 100',
  interval: 'Seconds from one part to the next, at least 60; 0 for a single part',
  key: 'Replaces the open order of the agent with the same key: repeat an order as a heartbeat. 0 replaces none',
}

const orderTerms = z.object({
  side: z.enum(ORDER_SIDES).describe('open and add buy, reduce sells'),
  symbol: z.string(),
  positionId: digits('The position that it trades; 0 until it has opened one'),
  usdcAmount: usdc('Purchase: what all parts spend together; null for a reduction').nullable(),
  exitBps: bps('Reduction: share of the position that all parts sell together'),
  exits: z.array(exitRule).describe('The exit ladder of the position that it opens'),
  maxSlippageBps: bps("Purchase: furthest below the oracle's value"),
  condition: z.enum(ORDER_CONDITIONS),
  price: z.string().nullable().meta({ description: ORDER_MEANINGS.price, example: '120.5' }),
  trailBps: bps('Distance of a trailing stop'),
  validAfter: unixSeconds(ORDER_MEANINGS.validAfter),
  validUntil: unixSeconds(ORDER_MEANINGS.validUntil),
  parts: z.int(),
  interval: digits('Seconds from one part to the next'),
  key: digits(ORDER_MEANINGS.key),
})

/** Presents an order's terms. */
export const presentOrderTerms = (order: Order, symbol: string): z.input<typeof orderTerms> =>
  present(orderTerms, {
    ...order,
    side: ORDER_SIDES[order.side] ?? 'reduce',
    symbol,
    usdcAmount: order.usdcAmount === 0n ? null : order.usdcAmount,
    exits: order.exits.map(presentExitRule),
    condition: ORDER_CONDITIONS[order.condition] ?? 'none',
    price: order.price === 0n ? null : formatUnits(order.price, ORACLE_DECIMALS),
  })

const execution = z
  .object({
    part: z.int().describe('From 1 to parts'),
    positionId: digits('The position that it traded'),
    amount: amount("Tokens bought (the token's base units), or the USDC that the vault keeps (base units)"),
    keeper: addressOut.describe('Who executed it'),
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    timestamp: unixSeconds('Timestamp of the block'),
  })
  .meta({ id: 'OrderExecution' })

const refusal = z.object({ code: z.string(), error: z.string(), remedy: z.string().optional() })

const shownOrder = z
  .object({
    orderId: hashOut.describe('The EIP-712 digest that was signed'),
    agentId: digits('Agent id'),
    ...orderTerms.shape,
    token: addressOut,
    state: z
      .enum(states)
      .describe(
        'open: waits. executing: a transaction is in flight. partlyFilled: some parts are executed, the rest waits. filled: all are. cancelled: by its signer, or replaced by one with its key. failed: a stop, a new signer, owner or order book, or the end of its position ended it',
      ),
    endReason: z.enum(endReasons).nullable().describe('Null while it waits, and once it is filled'),
    partsDone: z.int(),
    nextAt: unixSeconds('When the next part may execute; null once it has ended').nullable(),
    peakUsd: z.string().nullable().describe('Highest price that a trailing stop has seen; null before its activation'),
    triggerUsd: z
      .string()
      .nullable()
      .describe('Price that executes it; null if it waits for none, or for its activation'),
    distanceBps: bps(
      'How far the price must move to reach the trigger: negative is a fall, 0 means reached',
    ).nullable(),
    waitsFor: refusal
      .nullable()
      .describe(
        'What it waits for now: as the order book says, else why its last try was refused; null if nothing, or once it has ended',
      ),
    lastRefusal: refusal
      .extend({
        at: unixSeconds('When'),
        nextTryAt: unixSeconds('When it is tried again; null if that waits for a price').nullable(),
      })
      .nullable()
      .describe('Why the keeper could not execute it when it was due'),
    executions: z.array(execution),
    note: noteOut.optional(),
    transactionHash: hashOut.describe('The transaction that placed it'),
    blockNumber: digits('Block of that transaction'),
    placedAt: unixSeconds('Timestamp of that block'),
    endedAt: unixSeconds(
      'When it ended: of an expired one, the last second of its validity; of one whose position is closed, when that was, once the index has it. Null while it waits, and for one that a stop, a new signer or a new owner ended until somebody has freed its place',
    ).nullable(),
  })
  .meta({ id: 'Order' })

export const orderResponse = shownOrder.extend({ asOf }).meta({ id: 'OrderResponse' })

export const orderList = z
  .object({ agentId: digits('Agent id'), orders: z.array(shownOrder), nextCursor, asOf, lagBlocks })
  .meta({ id: 'OrderList' })

export const orderReceipt = z
  .object({
    agentId: digits('Agent id'),
    orderId: hashOut.describe('Order id'),
    state: z.enum(['open', 'cancelled']),
    transactionHash: hashOut,
    blockNumber: digits('Block of the transaction'),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'OrderReceipt' })

export const orderQuote = z
  .object({
    ...quoteFields,
    orderBook: addressOut.describe('Verifying contract of the signature'),
    checks: z.array(check).describe('Every rule for placing it'),
    executionChecks: z
      .array(check)
      .describe(
        'What the router would say of its next part at this moment. Not needed for placing: a part that fails waits',
      ),
    order: orderTerms.nullable().describe('What would be signed; null for a cancellation'),
    ...lossAtStopFields,
    typedData: z
      .discriminatedUnion('primaryType', [typedDataSchemas.PlaceOrder, typedDataSchemas.CancelOrder])
      .optional(),
    digest: z.string().optional().describe('EIP-712 digest of typedData; the id of the order to place'),
    body: z.record(z.string(), z.unknown()).optional().meta({
      description: 'The body to post, once the signature of typedData is added as `signature`',
      'x-passed-on': true,
    }),
  })
  .meta({ id: 'OrderQuote' })

const usdOrNull = (price: bigint | undefined) => (price ? formatUnits(price, ORACLE_DECIMALS) : null)

type EndReason = (typeof endReasons)[number]

const STATE_OF_END: Record<EndReason, (typeof states)[number]> = {
  cancelled: 'cancelled',
  replaced: 'cancelled',
  expired: 'expired',
  voided: 'failed',
  positionClosed: 'failed',
}

/**
 * Returns why an order has ended, whether or not anybody has freed its place; undefined while it waits, and once it is
 * filled.
 */
export function endReasonOf({ order, end }: OrderRecord, chain: OrderState | undefined, now: bigint) {
  if (end !== null) return endReasons[end.reason]
  if (chain === undefined) return undefined
  if (chain.waitsFor?.body.code === 'ORDER_IS_VOID') return 'voided'
  if (now > order.validUntil) return 'expired'
  return chain.isPositionClosed ? 'positionClosed' : undefined
}

/**
 * What the keeper knows about an order: whether a transaction is in flight, and why the last try failed. Times are Unix
 * seconds.
 */
export type OrderReport = {
  isInFlight: boolean
  lastRefusal: { code: string; message: string; at: string } | null
  /** Null if it waits for a price. */
  nextTryAt: bigint | null
}

/**
 * Presents an order at a time in Unix seconds. `chain` is undefined if it has ended, `report` if no keeper watches it.
 */
export function presentOrder(
  indexed: OrderRecord,
  { chain, report, symbol, now }: PresentedWith,
): z.input<typeof shownOrder> {
  const { orderId, order, executions } = indexed
  const isFilled = executions.length === order.parts
  const endReason = isFilled ? undefined : endReasonOf(indexed, chain, now)
  const open = isFilled || endReason !== undefined ? undefined : chain?.open
  const trigger = open && triggerPrice(order, open.peak)
  const last = executions.at(-1)
  const lastRefusal = open && report ? presentLastRefusal(report) : null
  const price = chain?.quote.price ?? 0n
  const distance = trigger && price > 0n ? distanceBps(order, trigger, price) : null
  // The next price is no use to an order whose trigger is far away.
  const waitingFor = (refusal: Refusal) =>
    trigger && distance !== 0 && refusal.body.code === 'PRICE_BEFORE_ORDER'
      ? refuse('CONDITION_NOT_MET', { orderId, price, trigger })
      : refusal
  return {
    orderId,
    agentId: `${order.agentId}`,
    ...presentOrderTerms(order, symbol),
    positionId: `${last?.positionId ?? order.positionId}`,
    token: order.token,
    state: isFilled ? 'filled' : endReason ? STATE_OF_END[endReason] : waitingState(report, executions.length),
    endReason: endReason ?? null,
    partsDone: executions.length,
    nextAt: open ? `${open.nextAt}` : null,
    peakUsd: usdOrNull(open?.peak),
    triggerUsd: usdOrNull(trigger),
    distanceBps: distance,
    waitsFor: open && chain?.waitsFor ? presentRefusal(waitingFor(chain.waitsFor).body) : reasonOf(lastRefusal),
    lastRefusal,
    executions: executions.map(executed => present(execution, executed)),
    ...(indexed.note !== undefined && { note: indexed.note }),
    transactionHash: indexed.transactionHash,
    blockNumber: `${indexed.blockNumber}`,
    placedAt: `${indexed.timestamp}`,
    endedAt: textOrNull(isFilled ? last?.timestamp : endReason && endOf(indexed, endReason)),
  }
}

/** Returns when an order ended; undefined for a void one whose place is not free. */
function endOf({ order, end, positionClosedAt }: OrderRecord, reason: EndReason): bigint | undefined {
  if (reason === 'expired') return order.validUntil
  return end?.timestamp ?? (reason === 'positionClosed' ? positionClosedAt : undefined)
}

type PresentedWith = {
  chain: OrderState | undefined
  report: OrderReport | undefined
  symbol: string
  now: bigint
}

const waitingState = (report: OrderReport | undefined, partsDone: number) => {
  if (report?.isInFlight) return 'executing'
  return partsDone > 0 ? 'partlyFilled' : 'open'
}

const textOrNull = (time: bigint | undefined) => (time === undefined ? null : `${time}`)

const presentRefusal = ({ code, error, remedy }: RefusalBody): z.input<typeof refusal> => ({
  code,
  error,
  ...(remedy !== undefined && { remedy }),
})

const presentLastRefusal = ({ lastRefusal, nextTryAt }: OrderReport) =>
  lastRefusal && {
    code: lastRefusal.code,
    error: lastRefusal.message,
    at: lastRefusal.at,
    nextTryAt: nextTryAt === null ? null : `${nextTryAt}`,
  }

const reasonOf = (refused: ReturnType<typeof presentLastRefusal>) =>
  refused && { code: refused.code, error: refused.error }

/** Returns how far a price must move to reach a trigger, in basis points of the price; 0 only if it has. */
function distanceBps({ condition }: Order, trigger: bigint, price: bigint): number {
  const isReached = condition === OrderCondition.AtOrAbove ? price >= trigger : price <= trigger
  if (isReached) return 0
  const distance = Number(((trigger - price) * BigInt(MAX_BPS)) / price)
  return distance || (trigger < price ? -1 : 1)
}
