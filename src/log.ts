import { escapeUnseenInJson } from '@agent-trading-service/protocol/unseen-text'
import { levelOf } from './errors/catalogue.ts'
import { type Facts, Refusal } from './errors/refusal.ts'
import { count } from './metrics/recorder.ts'

const MAX_FRAMES = 8

/**
 * Logs a refusal that is not the caller's fault. Of its cause only the class and the stack frames are logged, because
 * messages can contain RPC URLs, and with them keys.
 */
export function logRefusal({ status, body, cause }: Refusal, request: { requestId: string; path: string }): void {
  const level = levelOf(body.code)
  console[level](
    lineOf({
      level,
      ...request,
      status,
      code: body.code,
      ...subjectOf(body.details),
      ...(cause instanceof Error && describeFailure(cause)),
    }),
  )
}

/** Returns the agent, the intent and the transaction that a refusal names. Its other facts can come from a node. */
function subjectOf({ agentId, digest, transactionHash }: Facts = {}): Facts {
  return {
    ...(typeof agentId === 'string' && { agentId }),
    ...(typeof digest === 'string' && { digest }),
    ...(typeof transactionHash === 'string' && { transactionHash }),
  }
}

/** Returns what a log line may say about an error: its code or class, and its stack frames. */
function describeFailure(error: unknown): { cause: string; frames?: string[] } {
  if (!(error instanceof Error)) return { cause: typeof error }
  const thrown = error instanceof Refusal && error.cause instanceof Error ? error.cause : error
  return { cause: error instanceof Refusal ? error.body.code : error.name, frames: framesOf(thrown) }
}

/**
 * Returns the stack frames of an error. Its message comes first in the stack and can have lines that look like frames.
 */
const framesOf = ({ stack = '', message }: Error) =>
  (stack.includes(message) ? stack.slice(stack.indexOf(message) + message.length) : '')
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .slice(0, MAX_FRAMES)

/**
 * Writes one line for the operator. Facts are our own values: messages of errors can contain RPC URLs with API keys.
 */
export function logEvent(event: string, facts: Record<string, string | number> = {}): void {
  writeLine(event, facts)
}

/** Logs a failure with the code or class of the error and its stack frames. Returns undefined, for use in a `catch`. */
export function logFailure(event: string, error: unknown, facts: Record<string, string | number> = {}): undefined {
  writeLine(event, { ...facts, ...describeFailure(error) })
}

function writeLine(event: string, facts: object) {
  count('ats_log_events', { event })
  console.error(lineOf({ level: 'error', event, ...facts }))
}

/**
 * Returns the JSON of a line, with unseen characters escaped: a name or a URI of a caller must not change how a line
 * looks.
 */
const lineOf = (facts: object): string => escapeUnseenInJson(JSON.stringify(facts))
