import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { NOT_TRIED } from '../../src/keeper/keeper-entry.ts'
import { openKeeperStore } from '../../src/keeper/store.ts'

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName('a keeper of version 1'))

const VERSION_1 = `
  DROP TABLE exit_batch;
  CREATE TABLE sending (
    digest TEXT PRIMARY KEY, ids TEXT NOT NULL, deadline INTEGER NOT NULL, takes_batches INTEGER NOT NULL, evaluation TEXT NOT NULL
  ) WITHOUT ROWID;
  INSERT INTO keeper VALUES ('cursor', '3'), ('look', '{"blockNumber":"9","at":"100","prices":{"0x01":"5"}}');
  INSERT INTO position (id, token, fired, closed_at, evaluation, outcome) VALUES
    (1, '0x01', 1, NULL, NULL, '{"is":"deferred","at":"90","reason":"priceStale"}'),
    (2, '0x01', 0, NULL, NULL, NULL),
    (3, '0x01', 0, NULL, NULL, NULL);
  INSERT INTO sending VALUES ('0x0a', '["3"]', 120, 1, '[{"blockNumber":"9","price":"5","at":"100"}]');
`

test('a keeper upgrades tables of version 1 and keeps their rows', async () => {
  await runInDurableObject(keeper(), (_, { storage }) => void storage.sql.exec(VERSION_1))
  await evictDurableObject(keeper())

  const evaluation = { blockNumber: '9', price: '5', at: '100' }
  expect(await keeper().find(1n)).toEqual({
    evaluation,
    outcome: { kind: 'deferred', at: '90', reason: 'priceStale' },
  })
  expect(await keeper().find(2n)).toEqual({ evaluation, outcome: { kind: 'notReached', at: '100' } })
  // The exit of the third position is in flight.
  expect(await keeper().find(3n)).toEqual({ evaluation, outcome: undefined })
})

const MARKET = { token: '0x01', vault: '0x02' } as const
const entryOf = (positionId: bigint, closedAt: number | null) => ({
  ...NOT_TRIED,
  ...MARKET,
  positionId,
  agentId: 1n,
  triggers: { below: 90n, above: positionId > 3n ? 110n : undefined },
  sellsAtAnyPrice: false,
  fingerprint: undefined,
  firedRules: 0,
  closedAt,
  evaluation: undefined,
  outcome: undefined,
})
const storeNamed = (name: string, run: (store: ReturnType<typeof openKeeperStore>) => void) =>
  runInDurableObject(env.KEEPER.get(env.KEEPER.idFromName(name)), (_, { storage }) => run(openKeeperStore(storage.sql)))

test('a keeper reads the positions that a price reaches in turns', async () => {
  await storeNamed('a keeper of reached positions', store => {
    for (const id of [1n, 2n, 3n, 4n, 5n]) store.put(entryOf(id, null))
    const reached = (price: bigint, last: bigint) => store.reached(MARKET, { price, last, limit: 3 })
    expect(reached(90n, 0n)).toEqual([1n, 2n, 3n])
    expect(reached(90n, 3n)).toEqual([4n, 5n, 1n])
    expect(reached(90n, 1n)).toEqual([2n, 3n, 4n])
    expect(reached(110n, 0n)).toEqual([4n, 5n])
    expect(reached(100n, 0n)).toEqual([])
  })
})

test('a keeper compares all positions that closed in the hours before its last cycle with the chain, in turns', async () => {
  const now = 1_000_000_000_000
  const hours = (count: number) => count * 3_600_000
  await storeNamed('a keeper of closed positions', store => {
    store.put(entryOf(1n, null))
    store.put(entryOf(2n, now - hours(7)))
    for (const id of [3n, 4n, 5n]) store.put(entryOf(id, now - hours(2)))
    store.put(entryOf(6n, now - hours(3)))
    const peek = (at: number) => store.nextClosed(now, at / 1_000, 3).map(({ positionId }) => positionId)
    const next = (at: number) => {
      const positionIds = peek(at)
      store.advanceTurns()
      return positionIds
    }
    expect(peek(now)).toEqual([6n, 3n, 4n]) // and again if the read of these fails
    expect(next(now)).toEqual([6n, 3n, 4n])
    expect(next(now)).toEqual([5n])
    expect(next(now)).toEqual([6n, 3n, 4n])
    expect(next(now)).toEqual([5n])
    // The keeper could not reach the chain since then.
    expect(next(now - hours(2))).toEqual([2n, 6n, 3n])
  })
})
