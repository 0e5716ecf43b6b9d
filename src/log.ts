import { Unreachable } from './rpc/json-rpc.ts'

/** Writes one line for the operator. Facts are values of ours: an error's message can carry RPC URLs, and with them keys. */
export function logEvent(event: string, facts: Record<string, string | number> = {}) {
  console.error(JSON.stringify({ level: 'error', event, ...facts }))
}

/** For work that nobody waits for: a node that is away is no event, the next reconciliation asks again. */
export function logUnexpected(error: unknown): undefined {
  if (!(error instanceof Unreachable))
    logEvent('lane failure', { cause: error instanceof Error ? error.name : typeof error })
}
