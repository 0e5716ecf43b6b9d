import { expect, test } from 'vitest'
import { createLaneAlarm } from '../../src/executor/lane-alarm.ts'
import { openJournal } from '../../src/executor/store.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

test('a lane whose first pass after a restart finds an inclusion is woken at once, not at the epoch', async () => {
  const journal = openJournal(createSqlStorage(), () => {})
  const times: number[] = []
  const alarm = createLaneAlarm({ setAlarm: async time => void times.push(Number(time)) }, journal)
  const attempt = {
    hash: '0x01',
    nonce: 0,
    digest: null,
    purpose: 'cancel',
    raw: '0x',
    gas: 21_000,
    maxFee: 1n,
    sentAt: Date.now(),
    state: 'pending',
    blockNumber: null,
    blockHash: null,
    final: false,
    gasUsed: 0,
  } as const
  journal.attempts.insert([attempt])
  const start = Date.now()
  await alarm.run({
    needsPass: () => true,
    reconcile: async () =>
      journal.attempts.include([{ attempt, state: 'mined', block: { number: 1, hash: null }, gasUsed: 21_000 }]),
  })
  expect(times).toEqual([expect.any(Number)])
  expect(times[0]).toBeGreaterThanOrEqual(start)
})
