import { describeFailure } from './errors/log-refusal.ts'
import { count } from './metrics/recorder.ts'

/** Writes one line for the operator. Facts are our own values: messages of errors can contain RPC URLs with API keys. */
export function logEvent(event: string, facts: Record<string, string | number> = {}): void {
  writeLine(event, facts)
}

/** Logs a failure with the code or class of the error and its stack frames. Returns undefined, for use in a `catch`. */
export function logFailure(event: string, error: unknown, facts: Record<string, string | number> = {}): undefined {
  writeLine(event, { ...facts, ...describeFailure(error) })
}

function writeLine(event: string, facts: object) {
  count('ats_log_events', { event })
  console.error(JSON.stringify({ level: 'error', event, ...facts }))
}
