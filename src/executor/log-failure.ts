import { logEvent } from '../log.ts'
import { isUnreachable } from '../rpc/node-errors.ts'

/**
 * Logs a failure of work that no caller waits for. An unreachable node is not logged, because the next reconciliation
 * retries. Returns undefined, so that it can be passed to `catch`.
 */
export function logUnexpected(error: unknown): undefined {
  if (!isUnreachable(error)) logEvent('lane failure', { cause: error instanceof Error ? error.name : typeof error })
}
