import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSharedDeadlines } from '../../src/timeout.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('waits that share a timer', () => {
  it('end at their own deadlines, whatever the order they began in', async () => {
    const withDeadline = createSharedDeadlines()
    const ended: number[] = []
    const never = new Promise<never>(() => {})
    const waits = [300, 100, 200, 100].map(ms => withDeadline(never, Date.now() + ms, () => ended.push(ms)))
    await vi.advanceTimersByTimeAsync(99)
    expect(ended).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toEqual([100, 100])
    await vi.advanceTimersByTimeAsync(200)
    await Promise.all(waits)
    expect(ended).toEqual([100, 100, 200, 300])
  })

  it('use one timer, which ends with the last of them', async () => {
    const withDeadline = createSharedDeadlines()
    const work = Array.from({ length: 3 }, () => Promise.withResolvers<string>())
    const waits = work.map(({ promise }, index) => withDeadline(promise, Date.now() + 1_000 + index, () => 'late'))
    expect(vi.getTimerCount()).toBe(1)
    for (const { resolve } of work) resolve('done')
    expect(await Promise.all(waits)).toEqual(['done', 'done', 'done'])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('reject if the promise rejects or the timeout throws', async () => {
    const withDeadline = createSharedDeadlines()
    const failed = withDeadline(Promise.reject(new Error('failed')), Date.now() + 10, () => 'late')
    await expect(failed).rejects.toThrow('failed')
    const late = withDeadline(new Promise<never>(() => {}), Date.now() + 10, () => {
      throw new Error('late')
    })
    const rejected = expect(late).rejects.toThrow('late')
    await vi.advanceTimersByTimeAsync(10)
    await rejected
  })
})
