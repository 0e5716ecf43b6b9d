import { withDeadline } from '../timeout.ts'

/** Work with a time limit. It observes `signal`, and calls `abort` to end what else it started once it has its result. */
export type AbortableWork<Value> = (signal: AbortSignal, abort: () => void) => Promise<Value>

/**
 * Resolves with the result of `work`. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. Then, and when
 * `work` fails, the signal is aborted, so that nothing started by `work` outlives the call. `within` sets the timer.
 */
export async function abortAfter<Value>(
  timeoutMs: number,
  work: AbortableWork<Value>,
  within = withDeadline,
): Promise<Value> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  try {
    return await within(work(controller.signal, abort), Date.now() + timeoutMs, () => {
      const error = new DOMException('no response in time', 'TimeoutError')
      controller.abort(error)
      throw error
    })
  } catch (error) {
    abort() // no effect if the time is over
    throw error
  }
}

/** Returns whether an error is the timeout of `abortAfter`. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'
