import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Hex, numberToHex } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/executor/attempt-table.ts'
import { type Journal, openJournal } from '../../src/executor/store.ts'
import { newRequest } from '../support/lanes.ts'

const laneOf = (address: Hex) => env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(address))

/** Runs a test on the journal of a lane of its own. */
const withJournal = <Result>(address: Hex, run: (journal: Journal, sql: SqlStorage) => Result): Promise<Result> =>
  runInDurableObject(laneOf(address), (_, { storage: { sql } }) =>
    run(
      openJournal(sql, () => {}),
      sql,
    ),
  )

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
  const signer = '0x00000000000000000000000000000000000000A1'
  const request = { ...newRequest(), spenders: [], party: 'agent:1', signer } as const
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

  test('an intent with two transactions stays mined if a reorg moves the one that reverted', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A3', journal => {
      include(journal, second, 'mined', 11)
      displace(journal, first)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      include(journal, first, 'reverted', 12)
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 11 })
  })

  test('an intent with two transactions stays mined if a reorg makes the first one succeed, and the second one reverts', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A4', journal => {
      displace(journal, first)
      include(journal, first, 'mined', 12)
      include(journal, second, 'reverted', 13)
      journal.intents.setState(digest, 'rejected', { reason: 'it was cancelled' })
      journal.intents.reject(request, { reason: 'the call reverts' })
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 12, call: request.call, reason: null })
  })

  test('an intent with two transactions is final once the one that executed it is', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A5', journal => {
      include(journal, second, 'mined', 20)
      journal.finalize(19)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      journal.finalize(20)
    })
    expect(intent?.state).toBe('final')
  })

  test('an intent with two transactions is sent again if a reorg removes the one that executed it', async () => {
    const intent = await stateAfter('0x00000000000000000000000000000000000000A6', journal => {
      include(journal, second, 'mined', 20)
      displace(journal, second)
    })
    expect(intent?.state).toBe('sent')
  })
})
