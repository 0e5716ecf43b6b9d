/** A stage that is busy for longer takes the next batch nevertheless, so that a slow node holds nobody up. */
const MAX_WAIT_MS = 10

/**
 * Returns a function that hands items to `work` in batches (group commit). An idle stage takes at once whatever waits; while it
 * works, the next items collect. `work` gets at most `maxItems`, resolves when the stage is idle again and must not throw.
 */
export function createBatcher<Item>(work: (items: Item[]) => Promise<void>, maxItems: number): (item: Item) => void {
  let waiting: Item[] = []
  let inProgress = 0
  let isScheduled = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush() {
    isScheduled = false
    clearTimeout(timer)
    timer = undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      inProgress++
      void work(batch).finally(() => {
        inProgress--
        if (inProgress === 0) flush()
      })
    }
  }

  return item => {
    waiting.push(item)
    if (inProgress > 0) {
      timer ??= setTimeout(flush, MAX_WAIT_MS)
      return
    }
    // What arrives in the same turn leaves together.
    if (!isScheduled) queueMicrotask(flush)
    isScheduled = true
  }
}
