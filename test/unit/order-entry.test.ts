import { type Order, OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { encodeErrorResult, type Hex } from 'viem'
import { expect, it } from 'vitest'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { refuse } from '../../src/errors/refuse.ts'
import {
  failedOrder,
  NEVER,
  NEXT_PRICE,
  newOrderEntry,
  type OrderEntry,
  stepAfter as stepAfterSimulation,
  triggersOf,
} from '../../src/keeper/order-entry.ts'
import { randomOf } from '../support/seeded-random.ts'

const ORDER_ID: Hex = `0x${'ab'.repeat(32)}`
const AT = 1_800_000_000
const orderOf = (fields: Partial<Order>): Order => ({
  agentId: 7n,
  side: OrderSide.Reduce,
  token: '0x00000000000000000000000000000000000000aa',
  positionId: 3n,
  usdcAmount: 0n,
  exitBps: 10_000,
  exits: [],
  maxSlippageBps: 0,
  condition: OrderCondition.None,
  price: 0n,
  trailBps: 0,
  validAfter: 0n,
  validUntil: BigInt(AT) + 1_000n,
  parts: 1,
  interval: 0n,
  key: 0n,
  deadline: BigInt(AT),
  nonce: 0n,
  ...fields,
})
const entryOf = (fields: Partial<Order> = {}) => newOrderEntry({ orderId: ORDER_ID, order: orderOf(fields) })
const stepAfter = (
  entry: OrderEntry,
  reason: Hex | undefined,
  of: typeof market,
  at: number,
  isPositionClosed = false,
) => stepAfterSimulation(entry, { reason, isPositionClosed }, of, at)
const market = { price: 100n, roundId: 5n, isOpen: true }
const bookError = (errorName: string, ...args: unknown[]) =>
  encodeErrorResult({ abi: orderBookAbi, errorName, args } as never)
const notMet = (price: bigint, trigger: bigint) => bookError('ConditionNotMet', ORDER_ID, price, trigger)

it('a trailing stop is looked at no later than its trigger is met or moves by 10 bps', () => {
  const random = randomOf('trailing stops')
  for (let round = 0; round < 20_000; round++) {
    const peak = BigInt(random.integer(10_000, 1e9)) * BigInt(10 ** random.integer(0, 6))
    const trailBps = random.integer(1, 9_999)
    // As PriceMath.lessBps rounds.
    const triggerAt = (of: bigint) => (of * (10_000n - BigInt(trailBps))) / 10_000n
    const trigger = triggerAt(peak)
    if (trigger === 0n) continue
    const { below = 0n, above = 0n } = triggersOf(orderOf({ condition: OrderCondition.Trailing, trailBps }), trigger)
    expect(below).toBe(trigger)
    expect(above > peak || triggerAt(above) === trigger).toBe(true)
    const raised = (peak * 10_010n) / 10_000n + 2n
    expect(above <= raised).toBe(true)
  }
})

it('a trailing stop waits for its activation, is raised once per posted price, and then waits for its trigger', () => {
  const entry = entryOf({ condition: OrderCondition.Trailing, trailBps: 500, price: 120n })
  expect(entry).toMatchObject({ isUnchecked: true })
  const inactive = stepAfter(entry, notMet(100n, 0n), market, AT)
  expect(inactive).toMatchObject({ step: 'wait', entry: { triggers: { below: undefined, above: 120n }, trigger: 0n } })
  const activated = stepAfter(inactive.entry, notMet(121n, 0n), market, AT)
  expect(activated).toMatchObject({ step: 'raise', entry: { raisedRoundId: '5' } })
  const again = stepAfter(activated.entry, notMet(121n, 0n), market, AT)
  expect(again).toMatchObject({ step: 'wait', entry: { wakesAt: NEXT_PRICE } })
  const raised = stepAfter(again.entry, notMet(121_000n, 114_950n), { ...market, roundId: 6n }, AT)
  expect(raised).toMatchObject({ step: 'wait', entry: { triggers: { below: 114_950n }, wakesAt: null } })
  const closed = { ...market, roundId: 7n, isOpen: false }
  expect(stepAfter(raised.entry, notMet(150_000n, 114_950n), closed, AT)).toMatchObject({ step: 'wait' })
})

it('what the chain says about an order decides what happens next', () => {
  const entry = entryOf()
  const after = (reason: Hex | undefined, of = entry, open = market) => stepAfter(of, reason, open, AT)
  expect(after(undefined)).toMatchObject({ step: 'execute' })
  expect(after(undefined, entry, { ...market, isOpen: false })).toMatchObject({ step: 'wait' })
  expect(after(bookError('OrderNotDue', ORDER_ID, BigInt(AT + 60)))).toMatchObject({
    step: 'wait',
    entry: { wakesAt: AT + 60 },
  })
  const priceBefore = bookError('PriceBeforeOrder', ORDER_ID, 1n, 2n)
  const stale = encodeErrorResult({
    abi: priceOracleAbi,
    errorName: 'StalePrice',
    args: [entry.order.token, 1n, 2n],
  } as never)
  for (const reason of [priceBefore, stale])
    expect(after(reason)).toMatchObject({ step: 'wait', entry: { wakesAt: NEXT_PRICE, refusal: { at: `${AT}` } } })
  const closed = encodeErrorResult({ abi: tradeRouterAbi, errorName: 'PositionNotOpen', args: [3n] })
  for (const reason of [bookError('OrderIsVoid', ORDER_ID), bookError('OrderExpired', ORDER_ID, 1n), closed])
    expect(after(reason)).toMatchObject({ step: 'end', entry: { wakesAt: NEVER, endsAt: 0 } })
  expect(stepAfter(entry, notMet(100n, 90n), market, AT, true)).toMatchObject({ step: 'end' })
})

it('an order that the chain does not know is forgotten, unless it is so new that the node may be behind', () => {
  const entry = entryOf()
  const reason = bookError('OrderNotOpen', ORDER_ID)
  expect(stepAfter(entry, reason, market, AT)).toMatchObject({ step: 'wait', entry: { isUnchecked: true } })
  const known = { ...entry, learnedAt: Date.now() - 60_000 }
  expect(stepAfter(known, reason, market, AT)).toMatchObject({ step: 'remove' })
})

it('a refused order is tried again after doubled delays, and after up to an hour if its transactions cost gas', () => {
  const reason = encodeErrorResult({ abi: tradeRouterAbi, errorName: 'TradingPaused' } as never)
  let free = entryOf()
  const delays = Array.from({ length: 8 }, () => {
    free = stepAfter(free, reason, market, AT).entry
    return (free.wakesAt ?? 0) - AT
  })
  expect(delays).toEqual([2, 4, 8, 16, 32, 60, 60, 60])
  expect(free.refusal).toMatchObject({ code: 'TRADING_PAUSED' })
  let paid = entryOf()
  const sentAt = Array.from({ length: 20 }, () => {
    // The simulation passes, and the transaction executes nothing.
    const { step, entry } = stepAfter(paid, undefined, market, AT)
    expect(step).toBe('execute')
    paid = failedOrder(entry, refuse('INTERNAL').body, AT, true)
    return (paid.wakesAt ?? 0) - AT
  })
  expect(sentAt.slice(0, 3)).toEqual([2, 4, 8])
  expect(sentAt.at(-1)).toBe(3_600)
})
