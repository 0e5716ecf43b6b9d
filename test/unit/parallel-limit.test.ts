import { expect, test, vi } from 'vitest'
import { createParallelLimit } from '../../src/mcp/parallel-limit.ts'

/** Starts pieces of work that end when the test says so. Returns which have started, and how to end each. */
function startWork(count: number, limit: number, maxWaitMs: number) {
  const inTurn = createParallelLimit(limit, maxWaitMs)
  const started: number[] = []
  const ends = Array.from({ length: count }, () => Promise.withResolvers<void>())
  const results = ends.map(({ promise }, index) =>
    inTurn(async () => {
      started.push(index)
      await promise
      return index
    }),
  )
  return {
    started,
    results,
    end: (index: number) => ends[index]?.resolve(),
    fail: (index: number) => ends[index]?.reject(new Error('failed')),
  }
}

const WAIT = { timeout: 30_000 }

test('the reads of a session are made two at a time, in their order, also after one that fails', async () => {
  const { started, results, end, fail } = startWork(5, 2, 60_000)
  await vi.waitFor(() => expect(started).toEqual([0, 1]), WAIT)
  fail(1)
  await expect(results[1]).rejects.toThrow('failed')
  await vi.waitFor(() => expect(started).toEqual([0, 1, 2]), WAIT)
  end(0)
  await results[0]
  await vi.waitFor(() => expect(started).toEqual([0, 1, 2, 3]), WAIT)
  for (const index of [2, 3, 4]) end(index)
  expect(await Promise.all([0, 2, 3, 4].map(index => results[index]))).toEqual([0, 2, 3, 4])
})

test('a read waits for its turn for a limited time', async () => {
  const { started, results, end } = startWork(3, 1, 10)
  await vi.waitFor(() => expect(started).toEqual([0, 1, 2]), WAIT)
  for (const index of [0, 1, 2]) end(index)
  expect(await Promise.all(results)).toEqual([0, 1, 2])
})
