import { AgentTradingError, type ErrorKind } from '@agent-trading-service/client'
import { Failure, type FailureKind, type Remedy } from '../failure.ts'
import { serviceRemedy } from './service-remedy.ts'

const kinds: Record<ErrorKind, FailureKind> = {
  validation: 'usage',
  'not-found': 'refused',
  refused: 'refused',
  payment: 'payment',
  'rate-limited': 'unavailable',
  unavailable: 'unavailable',
  network: 'unavailable',
  'unknown-outcome': 'unknown',
  'untrusted-quote': 'mismatch',
}

/** Remedies of the client that name its functions. */
const remedies: Partial<Record<ErrorKind, Remedy>> = {
  'unknown-outcome': {
    command: 'Run `ats outcome` until it says what became of it; do not sign again before.',
    tool: 'Call `resume` until it says what became of it; do not repeat anything before.',
  },
}

/** Returns the failure that an error stands for. Anything unexpected is a defect, of which only the message is kept. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof AgentTradingError) {
    const { kind, message, code, remedy, requestId, retryable, details, status } = error
    const own = remedies[kind] ?? serviceRemedy(code, undefined)
    const isSaid = status !== undefined
    return new Failure(kinds[kind], message, {
      code,
      remedy: own ?? serviceRemedy(code, remedy),
      requestId,
      retryable,
      details,
      ...(isSaid && { isSaid, isRemedySaid: own === undefined }),
    })
  }
  const { message, code } = (error instanceof Error ? error : { message: 'An unknown error was thrown.' }) as {
    message: string
    code?: unknown
  }
  return new Failure('internal', message, {
    code: typeof code === 'string' ? code : 'INTERNAL',
    remedy: 'This looks like a defect of ats; please report it.',
  })
}
