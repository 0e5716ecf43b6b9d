import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'

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
