import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, vi } from 'vitest'
import { type CacheableResponse, createReadCache } from '../../src/chain/read-cache.ts'

const at = (blockNumber: number): CacheableResponse => ({
  asOf: { blockNumber: `${blockNumber}`, blockTimestamp: '0' },
})

it('the read cache shares one read between concurrent calls, and does not cache a rejection', async () => {
  const cache = createReadCache(60_000)
  const read = vi.fn(async () => at(1))
  const responses = await Promise.all(['a', 'a', 'a'].map(key => cache.getOrRead(key, read)))
  expect(read).toHaveBeenCalledOnce()
  expect(new Set(responses).size).toBe(1)
  await expect(cache.getOrRead('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await cache.getOrRead('b', async () => at(2))).toEqual(at(2))
})

it('the read cache keeps a response fresh until it is cleared, sees a newer block or the lease expires', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const cache = createReadCache(250)
    const [a, b] = [await cache.getOrRead('a', async () => at(1)), await cache.getOrRead('b', async () => at(1))]
    expect([cache.isFresh(a), cache.isFresh(b)]).toEqual([true, true])
    await cache.getOrRead('c', async () => at(2))
    expect([cache.isFresh(a), cache.isFresh(b)]).toEqual([false, false])
    const c = await cache.getOrRead('c', async () => at(3))
    vi.advanceTimersByTime(249)
    expect(cache.isFresh(c)).toBe(true)
    vi.advanceTimersByTime(1)
    expect(cache.isFresh(c)).toBe(false)
    const d = await cache.getOrRead('d', async () => at(1)) // the chain was restarted
    expect(cache.isFresh(d)).toBe(true)
    cache.clear()
    expect(cache.isFresh(d)).toBe(false)
  } finally {
    vi.useRealTimers()
  }
})

it('the read cache holds no response beyond its lease, however many others are read', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const cache = createReadCache(250)
    const responses: WeakRef<CacheableResponse>[] = []
    const held = () => responses.filter(response => response.deref() !== undefined).length
    for (let page = 0; page < 20; page++) {
      responses.push(new WeakRef(await cache.getOrRead(`page ${page}`, async () => at(1))))
      vi.advanceTimersByTime(50)
    }
    await vi.waitFor(() => {
      collectGarbage()
      expect(held()).toBeLessThanOrEqual(6)
    })
    expect(held()).toBeGreaterThan(0)
  } finally {
    vi.useRealTimers()
  }
})
