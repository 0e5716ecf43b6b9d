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

type Passes = Parameters<typeof createLaneAlarm>[2]

/**
 * Returns a lane's alarm with an attempt in its journal, the times for which it is armed, and what includes the
 * attempts.
 */
function openAlarm(passes: Partial<Passes> = {}) {
  const journal = openJournal(createSqlStorage(), () => {})
  const times: number[] = []
  const include = async () => {
    for (const one of journal.attempts.pending())
      journal.attempts.include([{ attempt: one, state: 'mined', block: { number: 1, hash: null }, gasUsed: 21_000 }])
  }
  const storage = {
    getAlarm: async () => times.at(-1) ?? null,
    setAlarm: async (time: number | Date) => void times.push(Number(time)),
  }
  const needed = { needsPass: () => true, suspectsReorg: () => false, reconcile: include }
  const alarm = createLaneAlarm(storage, journal, { ...needed, ...passes })
  journal.attempts.insert([attempt])
  return { alarm, journal, times, include }
}

test('a lane whose first pass after a restart finds an inclusion is woken soon, not at the epoch', async () => {
  const { alarm, times } = openAlarm()
  const start = Date.now()
  await alarm.run()
  expect(times).toEqual([expect.any(Number)])
  expect(times[0]).toBeGreaterThanOrEqual(start)
})

test('a lane looks at what is pending once a second, and stores its alarm once for all of it', async () => {
  vi.useFakeTimers()
  try {
    let passes = 0
    const { alarm, journal, times, include } = openAlarm({ reconcile: async () => void passes++ })
    for (const nonce of [1, 2, 3, 4]) {
      journal.attempts.insert([{ ...attempt, nonce, hash: `0x0${nonce}` }])
      await alarm.passOften()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect([passes, times.length]).toEqual([4, 1])
    await include()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(passes).toBe(5)
  } finally {
    vi.useRealTimers()
  }
})

test('a transaction is compared with the chain five seconds after it was sent at the earliest', async () => {
  let passes = 0
  const { alarm, times, include } = openAlarm({ needsPass: () => false, reconcile: async () => void passes++ })
  await include()
  await alarm.run()
  expect({ passes, times }).toEqual({ passes: 0, times: [attempt.sentAt + 5_000] })
})
