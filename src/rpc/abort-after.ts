/**
 * Resolves with the result of `work`. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. Always
 * aborts the signal at the end, so that nothing started by `work` outlives the call.
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

/** Returns whether an error is the timeout of `abortAfter`. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'
