import { Refusal } from './errors/refusal.ts'

/** Writes one line for the operator. Facts are our own values: messages of errors can contain RPC URLs with API keys. */
export function logEvent(event: string, facts: Record<string, string | number> = {}): void {
  console.error(JSON.stringify({ level: 'error', event, ...facts }))
}

/** Logs a failure with the code or the name of the error. Returns undefined, so that it can be the result of a `catch`. */
export function logFailure(event: string, error: unknown): undefined {
  const name = error instanceof Error ? error.name : typeof error
  logEvent(event, { cause: error instanceof Refusal ? error.body.code : name })
}
