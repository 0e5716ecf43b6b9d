/**
 * Returns what `work` resolves with. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. The signal
 * is aborted at the end in any case, so that nothing `work` has started outlives it.
 */
export async function abortAfter<Value>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = new DOMException('no response in time', 'TimeoutError')
    timeout.reject(error)
    controller.abort(error)
  }, timeoutMs)
  try {
    return await Promise.race([work(controller.signal), timeout.promise])
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
    controller.abort()
  }
}

/** Returns whether an error is that of `abortAfter`. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'
