import { bytesToHex, numberToHex } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/executor/attempt-table.ts'
import type { RelayRequest } from '../../src/executor/relay-types.ts'
import { type Journal, openJournal } from '../../src/executor/store.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

function newRequest(facts: Partial<RelayRequest> = {}): RelayRequest {
  const digest = bytesToHex(crypto.getRandomValues(new Uint8Array(32)))
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 3_600)
  const call = { to: numberToHex(1, { size: 20 }), data: digest }
  return { digest, kind: 'ladder', group: `agent:${digest}`, groupNonce: '0', deadline, call, ...facts }
}

test('a rejected simulation is stored for an hour without calldata, and at most sixteen of a group', () => {
  const requests = Array.from({ length: 40 }, (_, nonce) =>
    newRequest({ kind: 'reduce', group: 'agent:1', groupNonce: `${nonce}`, deadline: 10n ** 12n }),
  )
  const other = newRequest({ group: 'agent:2' })
  const sql = createSqlStorage()
  const { intents } = openJournal(sql, () => {})
  for (const request of [other, ...requests, ...requests]) intents.reject(request, { reason: 'it reverts' })
  expect(intents.nextPruneAt()).toBeLessThanOrEqual(Date.now() / 1000 + 3_601)
  expect(sql.exec('SELECT digest, data FROM intent ORDER BY rowid').toArray()).toEqual(
    [other, ...requests.slice(-16)].map(({ digest }) => ({ digest, data: '0x' })),
  )
  expect(intents.find(other.digest)).toMatchObject({ state: 'rejected', reason: 'it reverts' })
})

describe('an intent with two transactions', () => {
  const signer = '0x00000000000000000000000000000000000000A1'
  const request = { ...newRequest(), spenders: [], party: 'agent:1', signer } as const
  const admitted = { ...request, note: null }
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
  function stateAfter(events: (journal: Journal) => void) {
    const journal = openJournal(createSqlStorage(), () => {})
    journal.prepare([{ request: admitted, attempt: first }])
    include(journal, first, 'reverted', 10)
    journal.prepare([{ request: admitted, attempt: second }])
    events(journal)
    return journal.intents.find(digest)
  }
  function include(journal: Journal, attempt: Attempt, state: 'mined' | 'reverted', blockNumber: number) {
    journal.attempts.include([{ attempt, state, block: { number: blockNumber, hash: null }, gasUsed: 21_000 }])
    journal.intents.include([{ digest, state, blockNumber }])
  }
  function displace(journal: Journal, { nonce }: Attempt) {
    journal.attempts.reopen(nonce)
    journal.intents.setState(digest, 'sent')
  }

  test('an intent with two transactions stays mined if a reorg moves the one that reverted', () => {
    const intent = stateAfter(journal => {
      include(journal, second, 'mined', 11)
      displace(journal, first)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      include(journal, first, 'reverted', 12)
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 11 })
  })

  test('an intent with two transactions stays mined if a reorg makes the first one succeed, and the second one reverts', () => {
    const intent = stateAfter(journal => {
      displace(journal, first)
      include(journal, first, 'mined', 12)
      include(journal, second, 'reverted', 13)
      journal.intents.setState(digest, 'rejected', { reason: 'it was cancelled' })
      journal.intents.reject(request, { reason: 'the call reverts' })
    })
    expect(intent).toMatchObject({ state: 'mined', blockNumber: 12, call: request.call, reason: null })
  })

  test('an intent with two transactions is final once the one that executed it is', () => {
    const intent = stateAfter(journal => {
      include(journal, second, 'mined', 20)
      journal.finalize(19)
      expect(journal.intents.find(digest)?.state).toBe('mined')
      journal.finalize(20)
    })
    expect(intent?.state).toBe('final')
  })

  test('an intent with two transactions is sent again if a reorg removes the one that executed it', () => {
    const intent = stateAfter(journal => {
      include(journal, second, 'mined', 20)
      displace(journal, second)
    })
    expect(intent?.state).toBe('sent')
  })
})
