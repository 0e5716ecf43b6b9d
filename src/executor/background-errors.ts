import { logFailure } from '../log.ts'
import { isUnreachable } from '../rpc/node-errors.ts'

/**
 * Logs an error of work that no caller waits for; pass it to `catch`. An unreachable node is not logged, because the next
 * reconciliation retries.
 */
export function logUnexpected(error: unknown): undefined {
  if (!isUnreachable(error)) logFailure('lane failure', error)
}

/** Returns undefined if no node was reachable and throws every other error; pass it to `catch`. */
export function ignoreUnreachable(error: unknown): undefined {
  if (!isUnreachable(error)) throw error
}
