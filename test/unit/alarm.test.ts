import { expect, test, vi } from 'vitest'
import { armBefore } from '../../src/alarm.ts'

/** Returns the storage of an object whose alarm is armed for a time, and reads that time. */
function storageWith(armed: number | null) {
  let time = armed
  const storage = {
    getAlarm: async () => time,
    setAlarm: async (next: number | Date) => {
      time = Number(next)
    },
  }
  return { storage, time: () => time }
}

const NOW = 1_800_000_000_000
const at = async (armed: number | null, time: number) => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  try {
    const object = storageWith(armed)
    await armBefore(object.storage, time)
    return object.time()
  } finally {
    vi.useRealTimers()
  }
}

test('an alarm is armed for the earliest time that is asked for', async () => {
  expect(await at(null, NOW + 5_000)).toBe(NOW + 5_000)
  expect(await at(NOW + 9_000, NOW + 5_000)).toBe(NOW + 5_000)
  expect(await at(NOW + 1_000, NOW + 5_000)).toBe(NOW + 1_000)
})

test('an alarm that is seconds late is about to fire, and one that is an hour late was lost and is armed again', async () => {
  expect(await at(NOW - 2_000, NOW + 5_000)).toBe(NOW - 2_000)
  expect(await at(NOW - 3_600_000, NOW + 5_000)).toBe(NOW + 5_000)
})

test('an alarm is never armed for the present, because workerd drops one that a running alarm arms for now', async () => {
  expect(await at(null, NOW)).toBe(NOW + 1)
  expect(await at(null, NOW - 500)).toBe(NOW + 1)
})
