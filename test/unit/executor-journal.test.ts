import { bytesToHex, numberToHex } from 'viem'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Attempt } from '../../src/executor/attempt-table.ts'
import { toAdmitted } from '../../src/executor/intent-table.ts'
import type { RelayRequest } from '../../src/executor/relay-types.ts'
import { type Journal, openJournal } from '../../src/executor/store.ts'
import { addressAt, agentOf, signerOfAgent } from '../support/requesters.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

function newRequest(facts: Partial<RelayRequest> = {}): RelayRequest {
  const digest = bytesToHex(crypto.getRandomValues(new Uint8Array(32)))
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 3_600)
  const call = { to: numberToHex(1, { size: 20 }), data: digest }
  return { digest, kind: 'ladder', by: signerOfAgent(BigInt(digest)), groupNonce: '0', deadline, call, ...facts }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('an intent keeps which prices its call needs, and none if it was journalled before calls brought prices', () => {
  const sql = createSqlStorage()
  const before = openJournal(sql, () => {})
  const plain = toAdmitted(newRequest(), [])
  before.intents.prepare([{ ...plain, nonce: 1 }])
  sql.exec('ALTER TABLE intent DROP COLUMN prices')
  before.set('upgrades', '1')
  const { intents } = openJournal(sql, () => {})
  expect(intents.find(plain.digest)).toMatchObject({ call: plain.call, prices: undefined })
  const prices = { streams: [[numberToHex(11, { size: 32 })]], feeds: [numberToHex(2, { size: 20 })] }
  const priced = toAdmitted(newRequest({ prices }), [])
  intents.prepare([{ ...priced, nonce: 2 }])
  expect(intents.find(priced.digest)).toMatchObject({ call: priced.call, prices })
})

test('a rejected simulation is stored for an hour without calldata, and at most sixteen of a group', () => {
  const requests = Array.from({ length: 40 }, (_, nonce) =>
    newRequest({ kind: 'reduce', by: signerOfAgent(1), groupNonce: `${nonce}`, deadline: 10n ** 12n }),
  )
  const other = newRequest({ by: signerOfAgent(2) })
  const sql = createSqlStorage()
  const { intents } = openJournal(sql, () => {})
  for (const request of [other, ...requests, ...requests]) {
    vi.advanceTimersByTime(1)
    intents.reject(request, { reason: 'it reverts' })
  }
  expect(sql.exec('SELECT digest, data FROM intent ORDER BY updated_at').toArray()).toEqual(
    [other, ...requests.slice(-16)].map(({ digest }) => ({ digest, data: '0x' })),
  )
  expect(intents.find(other.digest)).toMatchObject({ state: 'rejected', reason: 'it reverts' })
  intents.prune()
  expect(intents.isEmpty()).toBe(false)
  vi.advanceTimersByTime(3_602_000)
  intents.prune()
  expect(intents.isEmpty()).toBe(true)
})

test('an intent is found by its body: by the nonce that it holds, and a message of an owner without it', () => {
  const journal = openJournal(createSqlStorage(), () => {})
  const bodyHash = numberToHex(9, { size: 32 })
  const sign = (nonce: number, facts: Partial<RelayRequest>) => {
    const request = toAdmitted(newRequest({ bodyHash, ...facts }), [])
    const { digest } = request
    const attempt = { hash: digest, nonce, digest, purpose: 'call', raw: '0x', gas: 1, maxFee: 1n, sentAt: 1 } as const
    const pending = { state: 'pending', blockNumber: null, blockHash: null, final: false, gasUsed: 0 } as const
    journal.prepare([{ request, attempt: { ...attempt, ...pending } }])
    return digest
  }
  const found = (groupNonce: string) => journal.intents.digestOfBody(bodyHash, { group: 'agent:1', groupNonce })
  const trade = sign(1, { kind: 'open', by: signerOfAgent(1), groupNonce: '3' })
  expect([found('3'), found('4')]).toEqual([trade, undefined])
  const mandate = sign(2, {
    kind: 'owner',
    by: { as: 'owner', agent: agentOf(1), account: addressAt(1) },
    groupNonce: '0',
  })
  expect(found('4')).toBe(mandate)
  journal.intents.setState(mandate, 'rejected')
  expect(found('4')).toBeUndefined()
})

test('a journal of the first version keeps its intents when it is opened, and accepts new ones', () => {
  const sql = createSqlStorage()
  sql.exec(`
    CREATE TABLE intent (
      digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
      nonces TEXT NOT NULL DEFAULT '[]', state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
      created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL, spenders TEXT NOT NULL DEFAULT '[]',
      party TEXT NOT NULL, signer TEXT, note TEXT, target TEXT NOT NULL, data TEXT NOT NULL
    ) WITHOUT ROWID;`)
  const old = numberToHex(1, { size: 32 })
  sql.exec(
    `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, state, created_at, updated_at, prune_at, party, target, data)
     VALUES (?, 'open', 'agent:1', '3', 9, 'rejected', 1, 1, 99, 'agent:1', '0x', '0x')`,
    old,
  )
  const bodyHash = numberToHex(9, { size: 32 })
  const request = toAdmitted(newRequest({ kind: 'open', by: signerOfAgent(1), groupNonce: '4', bodyHash }), [])
  openJournal(sql, () => {}).intents.prepare([{ ...request, nonce: 1 }])
  const { intents } = openJournal(sql, () => {})
  expect(intents.find(old)).toMatchObject({ digest: old, state: 'rejected', bodyHash: null })
  expect(intents.digestOfBody(bodyHash, { group: 'agent:1', groupNonce: '4' })).toBe(request.digest)
})

describe('an intent with two transactions', () => {
  const request = newRequest()
  const admitted = toAdmitted(request, [])
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

describe('a lane that starts again', () => {
  const admitted = (nonce: number) => ({ ...toAdmitted(newRequest(), []), nonce })
  const attemptOf = ({ digest, nonce }: { digest: Attempt['digest']; nonce: number }): Attempt => ({
    hash: numberToHex(nonce, { size: 32 }),
    nonce,
    digest,
    purpose: 'call',
    raw: '0x',
    gas: 21_000,
    maxFee: 7n,
    sentAt: Date.now(),
    state: 'pending',
    blockNumber: null,
    blockHash: null,
    final: false,
    gasUsed: 0,
  })
  function signAndInclude(journal: Journal, nonce: number, block: number) {
    const request = admitted(nonce)
    const attempt = attemptOf(request)
    journal.prepare([{ request, attempt }])
    journal.attempts.include([{ attempt, state: 'mined', block: { number: block, hash: null }, gasUsed: 21_000 }])
    journal.intents.include([{ digest: request.digest, state: 'mined', blockNumber: block }])
    return request.digest
  }

  test('the newest block of attempts that were signed before a time counts for finality without the node', () => {
    const journal = openJournal(createSqlStorage(), () => {})
    const start = Date.now()
    for (const nonce of [1, 2, 3]) {
      signAndInclude(journal, nonce, 10 * nonce)
      vi.advanceTimersByTime(1_000)
    }
    const found = [0, 1, 2_000, 9_000].map(ms => journal.attempts.newestBlockBefore(start + ms))
    expect(found).toEqual([-1, 10, 20, 30])
    journal.finalize(30)
    expect(journal.attempts.newestBlockBefore(start + 9_000)).toBe(-1)
  })

  test('an intent whose nonce another transaction used is still open after a restart, although later ones are mined', () => {
    const sql = createSqlStorage()
    const journal = openJournal(sql, () => {})
    const replaced = admitted(7)
    journal.prepare([{ request: replaced, attempt: attemptOf(replaced) }])
    const later = signAndInclude(journal, 8, 10)
    journal.attempts.markNonceUsedElsewhere(7)
    journal.finalize(99)
    const restarted = openJournal(sql, () => {})
    expect(restarted.intents.unsettled().map(({ digest }) => digest)).toEqual([replaced.digest])
    expect(restarted.intents.withoutPendingAttempt().map(({ digest }) => digest)).toEqual([replaced.digest])
    restarted.prepare([{ request: replaced, attempt: attemptOf({ ...replaced, nonce: 9 }) }])
    expect(restarted.intents.withoutPendingAttempt()).toEqual([])
    expect(restarted.attempts.ofIntent(replaced.digest).map(({ nonce }) => nonce)).toEqual([7, 9])
    restarted.finalize(99)
    const again = openJournal(sql, () => {})
    expect(again.intents.find(later)).toMatchObject({ state: 'final' })
    expect(again.attempts.pending().map(({ nonce }) => nonce)).toEqual([9])
    expect(again.intents.unsettled().map(({ digest }) => digest)).toEqual([replaced.digest])
  })

  test('an intent costs three rows besides their indexes: itself, its transaction and the inclusion', () => {
    const sql = createSqlStorage()
    const journal = openJournal(sql, () => {})
    const changes = () => sql.exec<{ total: number }>('SELECT total_changes() AS total').one().total
    const before = changes()
    const digest = signAndInclude(journal, 7, 10)
    expect(changes() - before).toBe(3)
    const at = Date.now()
    vi.advanceTimersByTime(60_000)
    expect(openJournal(sql, () => {}).intents.find(digest)).toMatchObject({
      state: 'mined',
      blockNumber: 10,
      updatedAt: at,
    })
    journal.finalize(10)
    expect(changes() - before).toBe(4) // one row for all that is final
  })

  test('the gas that inclusions and failed simulations charged is still known after a restart, for a day', () => {
    const sql = createSqlStorage()
    const journal = openJournal(sql, () => {})
    const at = Date.now() + 1
    vi.advanceTimersByTime(2)
    const included = attemptOf({ digest: null, nonce: 1 })
    journal.attempts.insert([included])
    const level = { minute: 5, sustained: 7, at }
    const inclusion = { attempt: included, state: 'mined', block: { number: 1, hash: null }, gasUsed: 21_000 } as const
    journal.attempts.include([inclusion], { 'agent:1': level, lane: level })
    journal.attempts.include([inclusion], { 'agent:1': { ...level, minute: 6, at: at + 1 } }) // after a reorg
    journal.gasLevels.write({ 'agent:failures of agent:1': level, lane: { ...level, at: at - 1 } })
    const levels = () => Object.fromEntries(openJournal(sql, () => {}).gasLevels.recent())
    expect(levels()).toEqual({
      'agent:1': { ...level, minute: 6, at: at + 1 },
      'agent:failures of agent:1': level,
      lane: level,
    })
    vi.advanceTimersByTime(86_400_001)
    expect(levels()).toEqual({})
  })

  test('finished intents are deleted with their attempts, and the next nonce is still known', () => {
    const sql = createSqlStorage()
    const journal = openJournal(sql, () => {})
    const open = admitted(3)
    const mined = signAndInclude(journal, 4, 10)
    journal.prepare([{ request: open, attempt: attemptOf(open) }])
    const newest = signAndInclude(journal, 5, 11)
    vi.advanceTimersByTime(9 * 86_400_000)
    journal.prune()
    expect([mined, newest].map(digest => journal.intents.find(digest)?.state)).toEqual(['mined', 'mined'])
    journal.attempts.include([
      { attempt: attemptOf(open), state: 'reverted', block: { number: 10, hash: null }, gasUsed: 21_000 },
    ])
    journal.intents.setState(open.digest, 'rejected', { reason: 'it was cancelled' })
    journal.finalize(11)
    journal.prune()
    expect(journal.intents.isEmpty()).toBe(true)
    expect(journal.attempts.highestNonce()).toBe(-1)
    expect(journal.get('nonce')).toBe('6')
  })
})
