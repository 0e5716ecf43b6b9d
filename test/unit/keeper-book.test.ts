import { expect, test } from 'vitest'
import type { TradingChain } from '../../src/chain/configured-chain.ts'
import { type LastCycle, openBook } from '../../src/keeper/book.ts'
import { createKeeper } from '../../src/keeper/client.ts'
import type { KeeperObject } from '../../src/keeper/object.ts'
import { NOT_TRIED, type PositionEntry } from '../../src/keeper/position-entry.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

const MARKET = { token: '0x01', vault: '0x02' } as const
const entryOf = (positionId: bigint, fields: Partial<PositionEntry> = {}): PositionEntry => ({
  ...NOT_TRIED,
  ...MARKET,
  positionId,
  agentId: 1n,
  triggers: { below: 90n, above: undefined },
  sellsAtAnyPrice: false,
  changedBlock: 1n,
  watchedUntil: 0,
  firedRules: 0,
  closedAt: null,
  evaluation: undefined,
  outcome: undefined,
  ...fields,
})
const newBook = () => openBook(createSqlStorage())
const idsOf = (entries: readonly PositionEntry[]) => entries.map(({ positionId }) => positionId)

test('a price reaches the positions of a market in turns', () => {
  const book = newBook()
  for (const id of [1n, 2n, 3n]) book.put(entryOf(id))
  for (const id of [4n, 5n]) book.put(entryOf(id, { triggers: { below: 90n, above: 110n } }))
  const reached = (price: bigint, last: bigint) => book.reached(MARKET, { price, last, limit: 3 })
  expect(reached(90n, 0n)).toEqual([1n, 2n, 3n])
  expect(reached(90n, 3n)).toEqual([4n, 5n, 1n])
  expect(reached(90n, 1n)).toEqual([2n, 3n, 4n])
  expect(reached(110n, 0n)).toEqual([4n, 5n])
  expect(reached(100n, 0n)).toEqual([])
})

test('a price reaches positions that have changed, but not those that wait for another try', () => {
  const book = newBook()
  for (const id of [1n, 2n]) book.put(entryOf(id))
  book.put(entryOf(3n, { failures: 1, nextTryAt: 1 }))
  book.mark({ block: 9n, positionIds: [2n] })
  expect(book.reached(MARKET, { price: 90n, last: 0n, limit: 3 })).toEqual([1n, 2n])
})

const cycleAt = (startedAt: number): LastCycle => ({
  startedAt,
  blockNumber: '9',
  at: '9',
  prices: {},
  deferrals: {},
})

test('a change marks positions, unless it is old, until they are read, and for a minute', () => {
  const book = newBook()
  for (const id of [1n, 2n]) book.put(entryOf(id))
  book.put(entryOf(3n, { agentId: 7n }))
  book.put(entryOf(4n, { agentId: 7n, closedAt: 1 }))
  book.put(entryOf(5n, { changedBlock: 1_000n }))
  expect(book.watched(Date.now())).toEqual([])
  book.mark({ block: 9n, positionIds: [1n, 5n, 99n], agentIds: [7n] })
  const inAnHour = Date.now() + 3_600_000
  const marked = book.watched(inAnHour) // the node was down, so no cycle has ended
  expect(idsOf(marked)).toEqual([1n, 3n])
  expect(marked[0]).toMatchObject({ changedBlock: 9n })
  book.setLastCycle(cycleAt(inAnHour), 5n)
  expect(book.watched(inAnHour)).toEqual([])
  expect(idsOf(book.watched(Date.now()))).toEqual([1n, 3n]) // a node may be behind
})

test('cycles read many changed positions in turns, each once before any again', () => {
  const book = newBook()
  const ids = Array.from({ length: 1_000 }, (_, index) => BigInt(index + 1))
  for (const id of ids) book.put(entryOf(id))
  book.mark({ block: 9n, positionIds: ids })
  const [first, second] = [book.watched(Date.now()), book.watched(Date.now())]
  expect(idsOf([...first, ...second])).toEqual(ids)
  expect(idsOf(book.watched(Date.now()))).toEqual(idsOf(first))
})

test('a reorg marks the positions that changed above its ancestor, open or closed', () => {
  const book = newBook()
  book.put(entryOf(1n, { changedBlock: 10n }))
  book.put(entryOf(2n, { changedBlock: 11n }))
  book.put(entryOf(3n, { changedBlock: 12n, closedAt: 1 }))
  book.markAbove(10n)
  expect(idsOf(book.watched(Date.now() + 3_600_000))).toEqual([2n, 3n])
})

test('the comparison with the chain takes the open positions in turns', () => {
  const book = newBook()
  for (const id of [1n, 2n, 4n, 5n]) book.put(entryOf(id))
  book.put(entryOf(3n, { closedAt: 1 }))
  expect(idsOf(book.nextOpen(0, 3))).toEqual([1n, 2n, 4n])
  expect(idsOf(book.nextOpen(4, 3))).toEqual([5n, 1n, 2n])
  expect(idsOf(book.nextOpen(5, 9))).toEqual([1n, 2n, 4n, 5n])
})

test('a market is forgotten with its last open position', () => {
  const book = newBook()
  book.put(entryOf(1n))
  expect(book.markets()).toEqual([MARKET])
  book.put(entryOf(1n, { closedAt: Date.now() }))
  expect(book.openCount()).toBe(0)
  book.prune(Date.now())
  expect(book.markets()).toEqual([])
  expect(book.entry(1n)).toBeDefined() // its outcome is shown for a week
})

test('the keeper hears of changes and reorgs although a call breaks, as when a deploy resets it', async () => {
  const heard: unknown[] = []
  let isReset = false
  const hear = async (what: unknown) => {
    isReset = !isReset
    if (isReset) throw new Error('Durable Object reset because its code was updated')
    heard.push(what)
  }
  const namespace: unknown = { idFromName: () => 'id', get: () => ({ changed: hear }) }
  const chain: unknown = { id: 1, trading: {} }
  const keeper = createKeeper(namespace as DurableObjectNamespace<KeeperObject>, chain as TradingChain)
  const changes = { positions: [{ block: 9n, positionIds: [1n] }] }
  await keeper.changed(changes)
  expect(heard).toEqual([changes])
  await keeper.changed({ reorgAbove: 5n })
  expect(heard).toEqual([changes, { reorgAbove: 5n }])
})

test('a reorg without a common block means that the chain has begun again: everything is forgotten', () => {
  const book = newBook()
  for (const id of [1n, 2n]) book.put(entryOf(id))
  book.setLastCycle(cycleAt(1), 2n)
  book.markAbove(0n)
  expect([book.openCount(), book.cursor()]).toEqual([2, 2n])
  book.markAbove(-1n)
  expect([book.openCount(), book.cursor(), book.lastCycle(), book.markets()]).toEqual([0, 0n, undefined, []])
})
