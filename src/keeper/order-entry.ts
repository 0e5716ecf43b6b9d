import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { triggerPrice } from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import type { TokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import type { Address, Hex } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import type { RefusalBody } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { PriceTriggers } from './position-entry.ts'
import { MAX_PRICE } from './price-text.ts'

/** An order on the chain: `orderId` is the digest of its content. */
export type OpenOrder = { orderId: Hex; order: Order }

/** An order with the block that placed it. */
export type OrderInBlock = OpenOrder & { block: number }

/** Why the last attempt to execute an order failed. `at` is Unix seconds of the chain. */
type OrderRefusal = { code: string; message: string; at: string }

/** What the book says about one open order. Times are Unix seconds of the chain; prices have 8 decimals. */
export type OrderEntry = OpenOrder & {
  /** 0 until the order names a position, or has opened one. */
  positionId: bigint
  /** The block that placed it, which a node that is behind does not know; 0 of entries from before it was stored. */
  placedBlock: number
  /** The prices at which the order needs a look. Only the chain decides whether it executes. */
  triggers: PriceTriggers
  /** The price at which the peak of a trailing stop is raised, also while the order sleeps. */
  raisesAt: bigint | undefined
  /** The trigger of a trailing stop that follows from the peak on the chain; 0 before its activation. */
  trigger: bigint | undefined
  /** Whether the next cycle simulates the order at any price. */
  isUnchecked: boolean
  /** When a reached price counts again; null at once. */
  wakesAt: number | null
  /** When the order is ended on the chain, unless it has ended before: when it expires, or once it is found dead. */
  endsAt: number
  /** Attempts in a row that did not execute the order. */
  failures: number
  refusal: OrderRefusal | undefined
  /** The observation at which its peak was last raised, or could not be. */
  raisedRoundId: string | undefined
  /** When the part was last recorded as due, in Unix seconds, so that the slippage of keepers widens. */
  recordedAt?: number | undefined
  /** What its token's issuer did that it waits for, while `wakesAt` is ISSUER. */
  held?: HeldBy | undefined
}

/** The vault that cannot trade a token, and the contracts' `Restriction` in digits. */
export type HeldBy = { vault: Address; restriction: string }

/** What a cycle knows of an order's market. `isOpen`: its price is fresh and settled, and its session open. */
export type OrderMarket = { price: bigint; observation: string; isOpen: boolean }

/** What a cycle does about an order. `wait` includes everything that only changes the entry. */
export type OrderStep = 'execute' | 'raise' | 'record' | 'end' | 'remove' | 'wait'

/** `wakesAt` of an order that waits for the next posted price. */
export const NEXT_PRICE = -1
/** `wakesAt` of an order that waits until its token's issuer changes what it restricts. */
export const ISSUER = -2
/** `wakesAt` of an order that waits to be ended. */
export const NEVER = Number.MAX_SAFE_INTEGER
/** A peak is raised once the trigger moves by this much. */
const RAISE_BPS = 10n
const BPS = 10_000n
/**
 * How often a record of a due part is confirmed while the pool fills nothing: it expires after 15 minutes
 * (`IOrderBook`).
 */
const CONFIRMATION_SECONDS = 600
/** The longest delay of an order that a simulation refuses, and of one whose transactions cost gas in vain. */
const MAX_RETRY_SECONDS = 60
const MAX_PAID_RETRY_SECONDS = 3_600

/** Returns the prices at which an order needs a look. Those of a trailing stop follow from its peak on the chain. */
export function triggersOf(order: Order, peak?: bigint): Pick<OrderEntry, 'triggers' | 'raisesAt' | 'trigger'> {
  const { condition, price } = order
  const at = (triggers: Partial<PriceTriggers>) => ({
    triggers: { below: undefined, above: undefined, ...triggers },
    raisesAt: undefined,
    trigger: undefined,
  })
  switch (condition) {
    case OrderCondition.AtOrBelow:
      return at({ below: price })
    case OrderCondition.AtOrAbove:
      return at({ above: price })
    case OrderCondition.Trailing: {
      if (peak === undefined) return at({ below: MAX_PRICE })
      const trigger = triggerPrice(order, peak)
      const raisesAt = peak === 0n ? price : (peak * (BPS + RAISE_BPS)) / BPS + 1n
      return { ...at({ below: trigger }), raisesAt, trigger: trigger ?? 0n }
    }
    default:
      return at({ below: MAX_PRICE })
  }
}

/** Returns the entry of an order that the keeper learns of. The chain says the trigger of a trailing stop. */
export const newOrderEntry = ({ orderId, order, block }: OrderInBlock): OrderEntry => ({
  orderId,
  order,
  positionId: order.positionId,
  placedBlock: block,
  ...triggersOf(order),
  isUnchecked: order.condition === OrderCondition.Trailing,
  wakesAt: Number(order.validAfter),
  endsAt: Number(order.validUntil) + 1,
  failures: 0,
  refusal: undefined,
  raisedRoundId: undefined,
})

/**
 * The result of an order's simulation at a block: `reason` is its revert data, undefined if it would execute.
 * `isPositionClosed` is false for an order without a position; `peak` is that of an open trailing stop; `restriction`
 * is what keeps the vault from the trade.
 */
export type SimulatedOrder = {
  block: Pick<Block, 'number'>
  reason: Hex | undefined
  isPositionClosed: boolean
  peak?: bigint | undefined
  restriction?: (TokenRestriction & { vault: Address }) | undefined
}

/** Returns what to do about an order after its simulation. `at` is the present time of the chain. */
export function stepAfter(
  entry: OrderEntry,
  { block, reason, isPositionClosed, peak, restriction }: SimulatedOrder,
  market: OrderMarket,
  at: number,
): { step: OrderStep; entry: OrderEntry } {
  const seen = peak === undefined ? entry : { ...entry, ...triggersOf(entry.order, peak) }
  const decided = stepAfterReason(
    { ...seen, held: undefined },
    { block, reason, isPositionClosed, restriction },
    market,
    at,
  )
  const { raisesAt, raisedRoundId } = decided.entry
  const isHigher = raisesAt !== undefined && market.price >= raisesAt
  if (decided.step !== 'wait' || !isHigher || !market.isOpen || raisedRoundId === market.observation) return decided
  // A peak that this price cannot raise, as it may be stale for the vault, waits for the next one.
  const canRise = RAISABLE.has(decodeRevert(reason ?? '0x')?.name)
  return { step: canRise ? 'raise' : 'wait', entry: { ...decided.entry, raisedRoundId: market.observation } }
}

/** What the book says of an order whose peak the present price may raise. */
const RAISABLE: ReadonlySet<string | undefined> = new Set(['ConditionNotMet', 'OrderNotDue'])

function stepAfterReason(
  entry: OrderEntry,
  { block, reason, isPositionClosed, restriction }: SimulatedOrder,
  market: OrderMarket,
  at: number,
): { step: OrderStep; entry: OrderEntry } {
  const checked: OrderEntry = { ...entry, isUnchecked: false }
  // Until it is mined, an execution does not reset the backoff.
  if (reason === undefined) return { step: market.isOpen ? 'execute' : 'wait', entry: { ...checked, wakesAt: null } }
  const ready: OrderEntry = { ...checked, wakesAt: null, failures: 0, refusal: undefined }
  const error = decodeRevert(reason)
  // The book's own reason comes first, so a price that is far hides a closed position.
  if (isPositionClosed && error?.name !== 'OrderNotOpen') return { step: 'end', entry: deadEntry(checked) }
  switch (error?.name) {
    case 'ConditionNotMet':
      return { step: 'wait', entry: ready }
    case 'OrderNotDue':
      return { step: 'wait', entry: { ...ready, wakesAt: Number(error.facts.dueAt) } }
    case 'PriceBeforeOrder':
    case 'StalePrice':
      return { step: 'wait', entry: { ...refused(checked, refusalOfRevert(reason).body, at), wakesAt: NEXT_PRICE } }
    case 'OrderNotOpen':
      if (block.number >= BigInt(entry.placedBlock)) return { step: 'remove', entry: checked }
      return { step: 'wait', entry: { ...checked, isUnchecked: true } }
    case 'OrderIsVoid':
    case 'OrderExpired':
    case 'PositionNotOpen':
      return { step: 'end', entry: deadEntry(checked) }
    default: {
      if (restriction) return { step: 'wait', entry: heldOrder(checked, restriction, at) }
      const failed = failedOrder(checked, refusalOfRevert(reason).body, at)
      const isWorthRecording = market.isOpen && at >= (entry.recordedAt ?? 0) + CONFIRMATION_SECONDS
      if (error?.name !== 'SlippageExceeded' || !isWorthRecording) return { step: 'wait', entry: failed }
      return { step: 'record', entry: { ...failed, recordedAt: at } }
    }
  }
}

/** What the book says of an order whose trade the token's issuer may have prevented; a token's own error is unknown. */
const MAY_BE_RESTRICTED: ReadonlySet<string | undefined> = new Set([undefined, 'TokenRestricted', 'PoolNotPaid'])

/** Whether the issuer of its token may be why an order fails, by the revert data of its simulation. */
export const mayBeRestricted = (reason: Hex | undefined): boolean =>
  reason !== undefined && MAY_BE_RESTRICTED.has(decodeRevert(reason)?.name)

/** Returns the entry of an order that waits for the issuer of its token: no price and no time wakes it. */
function heldOrder(
  entry: OrderEntry,
  { value, account, vault }: TokenRestriction & { vault: Address },
  at: number,
): OrderEntry {
  const { body } = refuse('TOKEN_RESTRICTED', { token: entry.order.token, restriction: value, account })
  return { ...refused(entry, body, at), failures: 0, wakesAt: ISSUER, held: { vault, restriction: `${value}` } }
}

/** Returns the entry of an order that can never execute again. */
const deadEntry = (entry: OrderEntry): OrderEntry => ({ ...entry, raisesAt: undefined, wakesAt: NEVER, endsAt: 0 })

/**
 * Returns the entry of an order after a part of it was executed, or its peak raised. The next cycle reads what it waits
 * for.
 */
export const changedOrder = (entry: OrderEntry, positionId = entry.positionId): OrderEntry => ({
  ...entry,
  positionId,
  isUnchecked: true,
  wakesAt: null,
  failures: 0,
  refusal: undefined,
  recordedAt: undefined,
})

/**
 * Returns the entry of an order that was refused; it is tried again with exponential backoff, which grows much longer
 * if a transaction was sent for it.
 */
export function failedOrder(entry: OrderEntry, refusal: RefusalBody, at: number, wasSent = false): OrderEntry {
  const seconds = wasSent
    ? Math.min(2 ** (entry.failures + 1), MAX_PAID_RETRY_SECONDS)
    : Math.min(2 ** entry.failures, MAX_RETRY_SECONDS)
  const wakesAt = at + seconds
  // An order that could not be ended is tried again as well.
  const endsAt = Math.max(Number(entry.order.validUntil) + 1, wakesAt)
  return { ...refused(entry, refusal, at), isUnchecked: false, failures: entry.failures + 1, wakesAt, endsAt }
}

const refused = (entry: OrderEntry, { code, error }: RefusalBody, at: number): OrderEntry => ({
  ...entry,
  refusal: { code, message: error, at: `${at}` },
})
