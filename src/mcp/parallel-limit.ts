/** Runs work, or lets it wait for its turn. */
export type InTurn = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Returns a function that runs at most `limit` pieces of work at a time, and the others in their order. Nothing waits longer
 * than `maxWaitMs`, so that slow work cannot stop everything behind it.
 */
export function createParallelLimit(limit: number, maxWaitMs: number): InTurn {
  let running = 0
  const waiting: (() => void)[] = []

  function waitForTurn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const start = () => {
      clearTimeout(timer)
      const place = waiting.indexOf(start)
      if (place >= 0) waiting.splice(place, 1)
      running++
      resolve()
    }
    const timer = setTimeout(start, maxWaitMs)
    waiting.push(start)
    return promise
  }

  return async work => {
    if (running >= limit) await waitForTurn()
    else running++
    try {
      return await work()
    } finally {
      running--
      if (running < limit) waiting[0]?.()
    }
  }
}
