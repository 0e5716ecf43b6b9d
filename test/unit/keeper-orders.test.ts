import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'
import { describe, expect, it } from 'vitest'
import { openBook } from '../../src/keeper/book.ts'
import { inShares } from '../../src/keeper/in-shares.ts'
import { ISSUER, NEVER, NEXT_PRICE, newOrderEntry, type OrderEntry } from '../../src/keeper/order-entry.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

const TOKEN = '0x00000000000000000000000000000000000000aa'
const idOf = (id: number): Hex => `0x${`${id}`.padStart(64, '0')}`
/** An order to buy at 90 or below. */
const entryOf = (id: number, fields: Partial<OrderEntry> = {}): OrderEntry => ({
  ...newOrderEntry({
    orderId: idOf(id),
    order: {
      agentId: 7n,
      side: OrderSide.Open,
      token: TOKEN,
      positionId: 0n,
      usdcAmount: 1_000_000n,
      exitBps: 0,
      exits: [{ triggerType: 0, triggerBps: -800n, exitBps: 10_000 }],
      maxSlippageBps: 100,
      condition: OrderCondition.AtOrBelow,
      price: 90n,
      trailBps: 0,
      validAfter: 0n,
      validUntil: 1_000n,
      parts: 2,
      interval: 60n,
      key: 0n,
      deadline: 10n,
      nonce: 2n ** 60n,
    },
    block: 1,
  }),
  wakesAt: null,
  ...fields,
})
const newTable = () => openBook(createSqlStorage()).orders
const ids = (entries: readonly OrderEntry[]) => entries.map(({ orderId }) => Number(orderId))

describe('the book of open orders', () => {
  it('says at which prices and at which time the next cycle has something to do, if it knows what each order waits for', () => {
    const waking = (...entries: OrderEntry[]) => {
      const table = newTable()
      for (const entry of entries) table.put(entry)
      return table.waking()
    }
    const [token, validUntil] = [TOKEN, 1_000]
    expect(waking()).toEqual({ prices: [], time: NEVER })
    expect(waking(entryOf(1))).toEqual({ prices: [{ token, below: 90n, above: undefined }], time: validUntil + 1 })
    expect(waking(entryOf(1, { wakesAt: 500 }))).toEqual({ prices: [], time: 500 })
    const trailing = entryOf(2, { triggers: { below: 95n, above: undefined }, raisesAt: 111n })
    expect(waking(entryOf(1), trailing)).toEqual({
      prices: [
        { token, below: 95n, above: undefined },
        { token, below: undefined, above: 111n },
      ],
      time: validUntil + 1,
    })
    for (const unknown of [{ isUnchecked: true }, { wakesAt: NEXT_PRICE }, { wakesAt: ISSUER }])
      expect(waking(entryOf(1), entryOf(2, unknown))).toBeUndefined()
  })

  it('returns an order as it was stored', () => {
    const table = newTable()
    const entry = entryOf(1, { trigger: 5n, failures: 2, refusal: { code: 'A', message: 'b', at: '3' } })
    table.put(entry)
    expect(table.entry(entry.orderId)).toEqual(entry)
    expect(table.count()).toBe(1)
    table.remove(entry.orderId)
    expect([table.count(), table.tokens(), table.entry(entry.orderId)]).toEqual([0, [], undefined])
  })

  it('a price reaches an order once it is awake: at its time, or at the next price', () => {
    const table = newTable()
    table.put(entryOf(1))
    table.put(entryOf(2, { triggers: { below: undefined, above: 110n } }))
    table.put(entryOf(3, { wakesAt: 500 }))
    table.put(entryOf(4, { wakesAt: NEXT_PRICE }))
    const reached = (price: bigint) => ids(table.reached(TOKEN, price, 10))
    expect([reached(90n), reached(91n), reached(110n)]).toEqual([[1], [], [2]])
    expect(table.nextWakeAt()).toBe(500)
    table.wake(499, [])
    expect(reached(90n)).toEqual([1])
    table.wake(500, ['0x00000000000000000000000000000000000000bb'])
    expect(reached(90n)).toEqual([1, 3])
    table.wake(500, [TOKEN])
    expect(reached(90n)).toEqual([1, 3, 4])
  })

  it('an order that waits for an issuer is woken by no price and no time, but when the restriction changes', () => {
    const table = newTable()
    const vaults = ['0x00000000000000000000000000000000000000f1', '0x00000000000000000000000000000000000000f2'] as const
    const held = (index: 0 | 1, restriction: string) => ({
      wakesAt: ISSUER,
      triggers: { below: 100n, above: undefined },
      held: { vault: vaults[index], restriction },
    })
    table.put(entryOf(1, held(0, '1')))
    table.put(entryOf(2, held(0, '1')))
    table.put(entryOf(3, held(1, '3')))
    expect(table.held()).toEqual([
      { token: TOKEN, vault: vaults[0], restriction: '1' },
      { token: TOKEN, vault: vaults[1], restriction: '3' },
    ])
    table.wake(9_999_999_999, [TOKEN])
    expect([table.reached(TOKEN, 90n, 10), table.nextWakeAt()]).toEqual([[], NEVER])
    table.wakeHeld({ token: TOKEN, vault: vaults[0], restriction: '1' })
    expect(ids(table.reached(TOKEN, 90n, 10))).toEqual([1, 2])
    expect(table.held()).toEqual([{ token: TOKEN, vault: vaults[1], restriction: '3' }])
  })

  it('a price raises the peak of an order, whatever the order waits for', () => {
    const table = newTable()
    table.put(entryOf(1, { raisesAt: 100n }))
    table.put(entryOf(2, { raisesAt: 110n, wakesAt: 500 }))
    table.put(entryOf(3))
    const raised = (price: bigint) => ids(table.raised(TOKEN, price, 10))
    expect([raised(99n), raised(100n), raised(110n)]).toEqual([[], [1], [1, 2]])
  })

  it('a change marks the orders of its agents and positions, whatever they wait for', () => {
    const table = newTable()
    for (const id of [1, 2, 3]) table.put(entryOf(id, { positionId: BigInt(id), wakesAt: 500 }))
    table.mark({ positionIds: [2n], orderIds: [idOf(3)] })
    expect(ids(table.unchecked(10))).toEqual([2, 3])
    table.mark({ agentIds: [7n] })
    expect(ids(table.unchecked(10))).toEqual([1, 2, 3])
  })

  it('orders are compared in turn, and expired ones are ended from the earliest on', () => {
    const table = newTable()
    for (const id of [1, 2, 3]) table.put(entryOf(id, { endsAt: 900 - id }))
    expect([table.nextInTurn(2), table.nextInTurn(2), table.nextInTurn(2)].map(ids)).toEqual([[1, 2], [3], [1, 2]])
    expect(ids(table.ended(899, 10))).toEqual([3, 2, 1])
    expect(ids(table.ended(897, 10))).toEqual([3])
  })
})

it('what a short queue leaves of its share goes to longer ones', () => {
  const queues = [[1, 2, 3, 4, 5], [6], [7, 8, 9]]
  expect(inShares(queues, 6)).toEqual([[1, 2], [6], [7, 8, 9]])
  expect(inShares(queues, 9)).toEqual(queues)
  expect(inShares([], 3)).toEqual([])
})
