import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Hex, pad } from 'viem'
import { expect, test } from 'vitest'

const LANE = '0x00000000000000000000000000000000000000A1'
const [DIGEST, REPLACED, MINED, CANCEL, PENDING] = ['0x1', '0x2', '0x3', '0x4', '0x5'].map(hex => pad(hex as Hex)) as [
  Hex,
  Hex,
  Hex,
  Hex,
  Hex,
]

const VERSION_1 = `
  DROP TABLE attempt; DROP TABLE lane; DROP TABLE intent; DROP TABLE gas_level;
  CREATE TABLE intent (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
    target TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL
  );
  CREATE TABLE lane (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE attempt (
    hash TEXT PRIMARY KEY, nonce INTEGER NOT NULL, digest TEXT, purpose TEXT NOT NULL, raw TEXT NOT NULL, gas INTEGER NOT NULL,
    max_fee TEXT NOT NULL, sent_at INTEGER NOT NULL, state TEXT NOT NULL, block_number INTEGER, block_hash TEXT, final INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX attempt_open ON attempt (nonce, sent_at, gas, max_fee) WHERE state = 'open';
  INSERT INTO intent VALUES ('${DIGEST}', 'ladder', 'agent:1', '0', 4102444800, '${LANE}', '0x', 'mined', NULL, NULL, 9, 1000, 2000, 4102444800);
  INSERT INTO attempt VALUES
    ('${REPLACED}', 0, '${DIGEST}', 'call', '0x', 21000, '7', 1000, 'impossible', NULL, NULL, 0),
    ('${CANCEL}', 1, '${DIGEST}', 'noop', '0x', 21000, '7', 2000, 'impossible', NULL, NULL, 0),
    ('${MINED}', 2, '${DIGEST}', 'call', '0x', 21000, '9', 3000, 'mined', 9, NULL, 0),
    ('${PENDING}', 3, '${DIGEST}', 'noop', '0x', 21000, '9', 4000, 'open', NULL, NULL, 0);
`

const lane = () => env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(LANE))

test('a lane upgrades a journal of version 1 and keeps its rows', async () => {
  await runInDurableObject(lane(), (_, { storage }) => void storage.sql.exec(VERSION_1))
  await evictDurableObject(lane())

  expect(await lane().find(DIGEST)).toMatchObject({
    state: 'mined',
    blockNumber: 9n,
    attempts: [
      { hash: REPLACED, nonce: 0, purpose: 'call', state: 'replaced', sentAt: 1 },
      { hash: CANCEL, nonce: 1, purpose: 'cancel', state: 'replaced', sentAt: 2 },
      { hash: MINED, nonce: 2, purpose: 'call', state: 'mined', sentAt: 3 },
      { hash: PENDING, nonce: 3, purpose: 'cancel', state: 'pending', sentAt: 4 },
    ],
  })
  expect(await lane().findTransaction(PENDING)).toMatchObject({ to: LANE, isPending: true })
  expect(await lane().findTransaction(REPLACED)).toMatchObject({ isPending: false, replacedBy: MINED })

  const indexes = await runInDurableObject(lane(), (_, { storage }) =>
    storage.sql.exec<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'index'`).toArray(),
  )
  expect(indexes.map(({ name }) => name)).toContain('attempt_pending')
  expect(indexes.map(({ name }) => name)).not.toContain('attempt_open')
})
