/**
 * Runs one read at a time, so that a response is never older than the one before. Requests during a read cause one more
 * read after it. `read` must not reject.
 */
export function createReadLoop<T>(read: () => Promise<T>, apply: (value: T) => void) {
  let isReading = false
  let isRequested = false
  let isStopped = false

  async function run() {
    isReading = true
    do {
      isRequested = false
      const value = await read()
      if (!isStopped) apply(value)
    } while (isRequested && !isStopped)
    isReading = false
  }
  return {
    request(): void {
      if (isReading) isRequested = true
      else run()
    },
    /** Drops the read in flight and starts no other. */
    stop(): void {
      isStopped = true
    },
  }
}
