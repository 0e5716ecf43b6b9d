import { type Order, OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { encodeErrorResult, type Hex } from 'viem'
import { expect, it } from 'vitest'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { refuse } from '../../src/errors/refuse.ts'
import {
  changedOrder,
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
/** The block of each simulation, before that of a new order. */
const BLOCK = 7
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
const entryOf = (fields: Partial<Order> = {}) =>
  newOrderEntry({ orderId: ORDER_ID, order: orderOf(fields), block: BLOCK + 1 })
const stepAfter = (
  entry: OrderEntry,
  reason: Hex | undefined,
  of: typeof market,
  at: number,
  isPositionClosed = false,
) => stepAfterSimulation(entry, { block: { number: BigInt(BLOCK) }, reason, isPositionClosed }, of, at)
const market = { price: 100n, observation: '5', isOpen: true }
const bookError = (errorName: string, ...args: unknown[]) =>
  encodeErrorResult({ abi: orderBookAbi, errorName, args } as never)
const notMet = (price: bigint, trigger: bigint) => bookError('ConditionNotMet', ORDER_ID, price, trigger)

it('a trailing stop is looked at no later than its trigger is met or moves by 10 bps', () => {
  const random = randomOf('trailing stops')
  for (let round = 0; round < 20_000; round++) {
    const peak = BigInt(random.integer(10_000, 1e9)) * BigInt(10 ** random.integer(0, 6))
    const trailBps = random.integer(1, 9_999)
    const {
      triggers,
      raisesAt = 0n,
      trigger,
    } = triggersOf(orderOf({ condition: OrderCondition.Trailing, trailBps }), peak)
    // As PriceMath.lessBps rounds.
    expect(trigger).toBe((peak * (10_000n - BigInt(trailBps))) / 10_000n)
    expect(triggers).toEqual({ below: trigger, above: undefined })
    expect(raisesAt > peak && raisesAt <= (peak * 10_010n) / 10_000n + 1n).toBe(true)
  }
})

it('a trailing stop waits for its activation, is raised once per posted price, and then waits for its trigger', () => {
  const entry = entryOf({ condition: OrderCondition.Trailing, trailBps: 500, price: 120n })
  expect(entry).toMatchObject({ isUnchecked: true })
  const step = (of: OrderEntry, peak: bigint, at: typeof market) =>
    stepAfterSimulation(
      of,
      { block: { number: BigInt(BLOCK) }, reason: notMet(at.price, 0n), isPositionClosed: false, peak },
      at,
      AT,
    )
  const inactive = step(entry, 0n, market)
  expect(inactive).toMatchObject({
    step: 'wait',
    entry: { triggers: { below: undefined }, raisesAt: 120n, trigger: 0n },
  })
  const activated = step(inactive.entry, 0n, { ...market, price: 121n })
  expect(activated).toMatchObject({ step: 'raise', entry: { raisedRoundId: '5' } })
  expect(step(activated.entry, 0n, { ...market, price: 121n })).toMatchObject({ step: 'wait' })
  const raised = step(activated.entry, 121_000n, { ...market, price: 121_000n, observation: '6' })
  expect(raised).toMatchObject({ step: 'wait', entry: { triggers: { below: 114_950n }, wakesAt: null } })
  const closed = { price: 150_000n, observation: '7', isOpen: false }
  expect(step(raised.entry, 121_000n, closed)).toMatchObject({ step: 'wait' })
})

it('the peak of a trailing stop is raised before its time and between its parts', () => {
  const entry = entryOf({ condition: OrderCondition.Trailing, trailBps: 500, validAfter: BigInt(AT) + 600n })
  const reason = bookError('OrderNotDue', ORDER_ID, BigInt(AT) + 600n)
  const at = (price: bigint, observation: string) =>
    stepAfterSimulation(
      entry,
      { block: { number: BigInt(BLOCK) }, reason, isPositionClosed: false, peak: 1_000n },
      { price, observation, isOpen: true },
      AT,
    )
  expect(at(1_001n, '6')).toMatchObject({ step: 'wait', entry: { wakesAt: AT + 600, raisesAt: 1_002n } })
  expect(at(1_100n, '7')).toMatchObject({ step: 'raise', entry: { wakesAt: AT + 600, raisedRoundId: '7' } })
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

it('an order that the chain does not know is forgotten, unless the node is behind the block that placed it', () => {
  const entry = entryOf()
  const reason = bookError('OrderNotOpen', ORDER_ID)
  expect(stepAfter(entry, reason, market, AT)).toMatchObject({ step: 'wait', entry: { isUnchecked: true } })
  const known = { ...entry, placedBlock: BLOCK }
  expect(stepAfter(known, reason, market, AT)).toMatchObject({ step: 'remove' })
})

it('a refused order is tried again after doubled delays, and after up to an hour if its transactions cost gas', () => {
  const reason = encodeErrorResult({ abi: tradeRouterAbi, errorName: 'TradingPaused' } as never)
  let free = entryOf()
  const delays = Array.from({ length: 8 }, () => {
    free = stepAfter(free, reason, market, AT).entry
    return (free.wakesAt ?? 0) - AT
  })
  expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
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

it('a part that the pool fills too far from the price is recorded as due, and confirmed every ten minutes', () => {
  const tooFar = encodeErrorResult({ abi: tradeRouterAbi, errorName: 'SlippageExceeded', args: [2n, 1n] })
  expect(stepAfter(entryOf(), tooFar, { ...market, isOpen: false }, AT)).toMatchObject({ step: 'wait' })
  const first = stepAfter(entryOf(), tooFar, market, AT)
  expect(first).toMatchObject({
    step: 'record',
    entry: { recordedAt: AT, wakesAt: AT + 1, refusal: { code: 'SLIPPAGE_EXCEEDED' } },
  })
  const soon = stepAfter(first.entry, tooFar, market, AT + 599)
  expect(soon).toMatchObject({ step: 'wait', entry: { recordedAt: AT, wakesAt: AT + 601 } })
  expect(stepAfter(soon.entry, tooFar, market, AT + 600)).toMatchObject({ step: 'record' })
  // The next part waits for itself.
  expect(changedOrder(first.entry).recordedAt).toBeUndefined()
})
