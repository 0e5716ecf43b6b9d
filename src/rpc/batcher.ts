/** A stage that is busy for longer takes the next batch anyway, so that a slow node does not delay it. */
const MAX_WAIT_MS = 10

/**
 * Returns a function that hands items to `work` in batches (group commit). An idle stage takes all waiting items at
 * once; while it works, further items collect. `work` gets at most `maxItems`, resolves when the stage is idle again
 * and must not throw.
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
    // Items of the same turn of the event loop share a batch.
    if (!isScheduled) queueMicrotask(flush)
    isScheduled = true
  }
}
