import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Hex, numberToHex, pad } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/executor/attempt-table.ts'
import { type Journal, openJournal } from '../../src/executor/store.ts'
import { newRequest } from '../support/lanes.ts'

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

const laneOf = (address: Hex) => env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(address))
const lane = () => laneOf(LANE)

/** Runs a test on the journal of a lane of its own. */
const withJournal = <Result>(address: Hex, run: (journal: Journal, sql: SqlStorage) => Result): Promise<Result> =>
  runInDurableObject(laneOf(address), (_, { storage: { sql } }) =>
    run(
      openJournal(sql, () => {}),
      sql,
    ),
  )

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

test('a rejected simulation is stored for an hour without calldata, and at most sixteen of a group', async () => {
  const address = '0x00000000000000000000000000000000000000A2'
  const requests = Array.from({ length: 40 }, (_, nonce) =>
    newRequest({ kind: 'reduce', group: 'agent:1', groupNonce: `${nonce}`, deadline: 10n ** 12n }),
  )
  const other = newRequest({ group: 'agent:2' })
  const rows = await withJournal(address, (journal, sql) => {
    for (const request of [other, ...requests, ...requests]) journal.intents.reject(request, { reason: 'it reverts' })
    expect(journal.intents.nextPruneAt()).toBeLessThanOrEqual(Date.now() / 1000 + 3_601)
    return sql.exec<{ digest: Hex; data: Hex }>('SELECT digest, data FROM intent ORDER BY rowid').toArray()
  })
  expect(rows).toEqual([other, ...requests.slice(-16)].map(({ digest }) => ({ digest, data: '0x' })))
  expect(await laneOf(address).find(other.digest)).toMatchObject({ state: 'rejected', reason: 'it reverts' })
})

describe('an intent with two transactions', () => {
  const request = { ...newRequest(), spenders: [] }
  const { digest } = request
  const attemptAt = (nonce: number): Attempt => ({
    hash: numberToHex(nonce, { size: 32 }),
    nonce,
    digest,
    purpose: 'call',
    raw: '0x',
    gas: 21_000,
    maxFee: 7n,
    sentAt: nonce,
    state: 'pending',
    blockNumber: null,
    blockHash: null,
    final: false,
    gasUsed: 0,
  })
  const [first, second] = [attemptAt(7), attemptAt(8)]
  /** Journals what happens to it in this order, and returns its state. */
  const stateAfter = (address: Hex, events: (journal: Journal) => void) =>
    withJournal(address, journal => {
      journal.prepare([{ request, attempt: first }])
      include(journal, first, 'reverted', 10)
      journal.prepare([{ request, attempt: second }])
      events(journal)
      return journal.intents.find(digest)
    })
  function include(journal: Journal, attempt: Attempt, state: 'mined' | 'reverted', blockNumber: number) {
    journal.attempts.include([{ attempt, state, block: { number: blockNumber, hash: null }, gasUsed: 21_000 }])
    journal.intents.include([{ digest, state, blockNumber }])
  }
  function displace(journal: Journal, { nonce }: Attempt) {
    journal.attempts.reopen(nonce)
    journal.intents.setState(digest, 'sent')
  }

  test('stays mined if a reorg moves the one that reverted', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A3', journal => {
      include(journal, second, 'mined', 11)
      displace(journal, first)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      include(journal, first, 'reverted', 12)
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 11 })
  })

  test('stays mined if a reorg makes the first one succeed, and the second one reverts', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A4', journal => {
      displace(journal, first)
      include(journal, first, 'mined', 12)
      include(journal, second, 'reverted', 13)
      journal.intents.setState(digest, 'rejected', { reason: 'it was cancelled' })
      journal.intents.reject(request, { reason: 'the call reverts' })
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 12, call: request.call, reason: null })
  })

  test('is final once the one that executed it is', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A5', journal => {
      include(journal, second, 'mined', 20)
      journal.finalize(19)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      journal.finalize(20)
    })
    expect(intent?.state).toBe('final')
  })

  test('is sent again if a reorg removes the one that executed it', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A6', journal => {
      include(journal, second, 'mined', 20)
      displace(journal, second)
    })
    expect(intent?.state).toBe('sent')
  })
})
