import { expect, test, vi } from 'vitest'
import { createLaneAlarm } from '../../src/executor/lane-alarm.ts'
import { openJournal } from '../../src/executor/store.ts'
import { createSqlStorage } from '../support/sqlite-storage.ts'

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
const newJournal = () => openJournal(createSqlStorage(), () => {})

test('a lane whose first pass after a restart finds an inclusion is woken at once, not at the epoch', async () => {
  const journal = newJournal()
  const times: number[] = []
  const alarm = createLaneAlarm({ setAlarm: async time => void times.push(Number(time)) }, journal, {
    needsPass: () => true,
    reconcile: async () =>
      journal.attempts.include([{ attempt, state: 'mined', block: { number: 1, hash: null }, gasUsed: 21_000 }]),
  })
  journal.attempts.insert([attempt])
  const start = Date.now()
  await alarm.run()
  expect(times).toEqual([expect.any(Number)])
  expect(times[0]).toBeGreaterThanOrEqual(start)
})

test('a lane looks at what is pending once a second, and stores its alarm once for all of it', async () => {
  vi.useFakeTimers()
  try {
    const journal = newJournal()
    const times: unknown[] = []
    let passes = 0
    const alarm = createLaneAlarm({ setAlarm: async time => void times.push(time) }, journal, {
      needsPass: () => true,
      reconcile: async () => void passes++,
    })
    for (const nonce of [0, 1, 2, 3]) {
      journal.attempts.insert([{ ...attempt, nonce, hash: `0x0${nonce}` }])
      await alarm.armForPending()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect([passes, times.length]).toEqual([4, 1])
    for (const one of journal.attempts.pending())
      journal.attempts.include([{ attempt: one, state: 'mined', block: { number: 1, hash: null }, gasUsed: 21_000 }])
    await vi.advanceTimersByTimeAsync(10_000)
    expect(passes).toBe(5)
  } finally {
    vi.useRealTimers()
  }
})
