import { describe, expect, it } from 'vitest'
import { createSharedReads } from '../../src/chain/combine-concurrent-reads.ts'

/** Doubles numbers. The first read waits until it is released. */
function createHeldReads(readAll = async (queries: readonly number[]) => queries.map(query => query * 2)) {
  const batches: (readonly number[])[] = []
  const released = Promise.withResolvers<void>()
  const read = createSharedReads(async (queries: readonly number[]) => {
    batches.push(queries)
    if (batches.length === 1) await released.promise
    return readAll(queries)
  })
  return { read, batches, release: released.resolve }
}

describe('reads of concurrent requests', () => {
  it('reads of concurrent requests start at once if none is on its way; those that come meanwhile share the next one', async () => {
    const { read, batches, release } = createHeldReads()
    const results = [1, 2, 3, 4].map(read)
    expect(batches).toEqual([[1]])
    release()
    expect(await Promise.all(results)).toEqual([2, 4, 6, 8])
    expect(batches.map(batch => batch.toSorted())).toEqual([[1], [2, 3, 4]])
    expect(await read(5)).toBe(10)
    expect(batches.at(-1)).toEqual([5])
  })

  it('reads of concurrent requests are repeated one by one if the shared read fails, and only the faulty one fails', async () => {
    const { read, batches, release } = createHeldReads(async queries => {
      if (queries.includes(3)) throw new Error('3 is faulty')
      return queries.map(query => query * 2)
    })
    const results = [1, 2, 3, 4].map(read)
    release()
    const settled = await Promise.allSettled(results)
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect(batches.slice(2).toSorted()).toEqual([[2], [3], [4]])
  })

  it('reads of concurrent requests do not wait for a read that hangs', async () => {
    const { read, batches } = createHeldReads()
    void read(1)
    expect(await Promise.all([2, 3].map(read))).toEqual([4, 6])
    // Either of the two may be the first to see that its turn has come.
    expect(batches.map(batch => batch.toSorted())).toEqual([[1], [2, 3]])
  })
})
