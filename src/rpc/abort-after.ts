import { withDeadline } from '../timeout.ts'

/**
 * Resolves with the result of `work`. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. Then, and when
 * `work` fails, it aborts the controller, so that nothing that `work` started outlives the call. A `work` that succeeds while
 * requests are open aborts them itself. `within` is `withDeadline`, or a variant whose calls share a timer.
 */
export async function abortAfter<Value>(
  timeoutMs: number,
  work: (controller: AbortController) => Promise<Value>,
  within = withDeadline,
): Promise<Value> {
  const controller = new AbortController()
  try {
    return await within(work(controller), Date.now() + timeoutMs, () => {
      throw new DOMException('no response in time', 'TimeoutError')
    })
  } catch (error) {
    controller.abort(error)
    throw error
  }
}

/** Returns whether an error is the timeout of `abortAfter`. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'
