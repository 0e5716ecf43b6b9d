import type { ErrorDetails } from './generated/error-codes.ts'
import { validationCodes } from './generated/error-codes.ts'

/** One value of a quote that differs from the request. */
export type QuoteMismatch = { field: string; expected: unknown; given: unknown }

/** The details of the errors that the client itself throws, by code. */
export type ClientErrorDetails = {
  /** The quote differs from the request or the pins; the code of the error names the first field. */
  UNTRUSTED_QUOTE: { mismatches: readonly QuoteMismatch[] }
  /** The first rule that fails, with the code that a submission would get, and every one that fails. */
  CHECKS_FAILED: {
    code: string
    rule: string
    sentence: string
    remedy: string
    checks: readonly { rule: string; code: string; problem?: string | undefined; remedy?: string | undefined }[]
  }
  UNKNOWN_OUTCOME: { digest: `0x${string}` }
  NETWORK_ERROR: { url: string }
}

type AnyDetails = ErrorDetails & ClientErrorDetails
/** The codes with typed details. */
export type ErrorCode = keyof AnyDetails

/** The kinds of this package's errors; each has its class. */
export type ErrorKind =
  | 'validation'
  | 'not-found'
  | 'refused'
  | 'payment'
  | 'rate-limited'
  | 'unavailable'
  | 'unknown-outcome'
  | 'untrusted-quote'
  | 'network'

export type ErrorFacts = {
  remedy?: string | undefined
  retryable?: boolean | undefined
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
  details?: unknown
  status?: number | undefined
  cause?: unknown
}

/** The root of every error that this package throws. */
export abstract class AgentTradingError extends Error {
  abstract readonly kind: ErrorKind
  /** Stable, in SCREAMING_SNAKE_CASE. */
  readonly code: string
  /** What to do next. */
  readonly remedy: string | undefined
  /** Whether the identical request may succeed later. */
  readonly retryable: boolean
  readonly retryAfterSeconds: number | undefined
  /** Of the service's response; quote it when you report a problem. */
  readonly requestId: string | undefined
  /** Facts such as the limit, the given and the expected value. `is(code)` narrows their type. */
  readonly details: unknown
  /** The HTTP status, if the service responded. */
  readonly status: number | undefined

  constructor(code: string, message: string, facts: ErrorFacts = {}) {
    super(message, { cause: facts.cause })
    this.name = new.target.name
    this.code = code
    this.remedy = facts.remedy
    this.retryable = facts.retryable ?? false
    this.retryAfterSeconds = facts.retryAfterSeconds
    this.requestId = facts.requestId
    this.details = facts.details
    this.status = facts.status
  }

  /** Whether the error has this code; narrows the type of `details`. */
  is<C extends ErrorCode>(code: C): this is this & { code: C; details: AnyDetails[C] } {
    return this.code === code
  }
}

/** The request is malformed; nothing was sent to the chain. */
export class ValidationError extends AgentTradingError {
  readonly kind = 'validation'
}
/** Returns the error of a call that would take its bound from the service alone. */
export const boundRequired = (argument: string, what: string) =>
  new ValidationError('BOUND_REQUIRED', `Without a node, only the service says ${what}; pass ${argument}.`, {
    remedy: `Pass ${argument}, or a node as \`rpcUrl\` (ats: \`--rpc\`), on which the client reads it.`,
  })
/** The service has no such agent, vault, position, intent or path. */
export class NotFoundError extends AgentTradingError {
  readonly kind = 'not-found'
}
/** A rule of the contracts, the mandate or the service refuses it; nothing was executed. */
export class RefusedError extends AgentTradingError {
  readonly kind = 'refused'
}
/** A payment is required, or was not accepted. */
export class PaymentError extends AgentTradingError {
  readonly kind = 'payment'
}
/** A rate limit or a gas budget is exhausted, for longer than the client waits. */
export class RateLimitedError extends AgentTradingError {
  readonly kind = 'rate-limited'
}
/** The service or its chain cannot do it at the moment; nothing was executed. */
export class UnavailableError extends AgentTradingError {
  readonly kind = 'unavailable'
}
/** The service could not be reached, or its response was cut off. */
export class NetworkError extends AgentTradingError {
  readonly kind = 'network'
}
/** A quote, a contract or a payment differs from the request or the pins. Nothing was signed. */
export class UntrustedQuoteError extends AgentTradingError {
  readonly kind = 'untrusted-quote'
  override readonly details: ClientErrorDetails['UNTRUSTED_QUOTE']
  constructor(code: string, mismatches: readonly QuoteMismatch[], remedy?: string) {
    const [first] = mismatches
    super(code, `${first?.field} is ${show(first?.given)}; expected ${show(first?.expected)}. Nothing was signed.`, {
      remedy:
        remedy ??
        'Do not sign this. Check the base URL and the pins; if both are right, the service is not to be trusted.',
    })
    this.details = { mismatches }
  }
}

/** A signed message with its way to the service. It holds no key and can be stored and posted again. */
export type Submission = {
  kind: string
  method: 'POST' | 'PUT'
  path: string
  body: Record<string, unknown>
  /** The EIP-712 digest, by which the service executes the message at most once. */
  digest: `0x${string}`
  /** The nonce that the message takes, and its holder. */
  nonce?: { holder: string; value: string }
}

/** The message was posted and may have been executed. `client.resume(submission)` finds out, and never trades twice. */
export class UnknownOutcomeError extends AgentTradingError {
  readonly kind = 'unknown-outcome'
  readonly submission: Submission
  constructor(submission: Submission, cause: unknown) {
    super('UNKNOWN_OUTCOME', `The message ${submission.digest} was posted and its outcome is not known yet.`, {
      remedy:
        'Call client.resume(error.submission) until it returns or throws another error; do not sign again before.',
      retryable: true,
      details: { digest: submission.digest },
      cause,
    })
    this.submission = submission
  }
}

const show = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing'))

type ErrorBody = {
  error?: unknown
  code?: unknown
  remedy?: string
  retryable?: boolean
  retryAfterSeconds?: number
  requestId?: string
  details?: unknown
}

/** Returns the error of a response that is not a success. */
export function errorOfResponse(status: number, headers: Headers, body: unknown): AgentTradingError {
  const given = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
  const code = typeof given.code === 'string' ? given.code : `HTTP_${status}`
  const message = typeof given.error === 'string' ? given.error : `The service responded with status ${status}.`
  const seconds = given.retryAfterSeconds ?? retryAfterOf(headers)
  const facts: ErrorFacts = {
    status,
    remedy: given.remedy,
    // A gateway's own response has no code; what stands behind it may be back in a moment.
    retryable: given.retryable ?? (status === 429 || (given.code === undefined && status >= 500)),
    retryAfterSeconds: seconds,
    requestId: given.requestId ?? headers.get('x-request-id') ?? undefined,
    details: status === 402 ? body : given.details,
  }
  return new (classOf(status, code))(code, message, facts)
}

type ErrorClass = new (code: string, message: string, facts: ErrorFacts) => AgentTradingError

function classOf(status: number, code: string): ErrorClass {
  if (status === 402) return PaymentError
  if (status === 429) return RateLimitedError
  if (status === 404) return NotFoundError
  if (status >= 500) return UnavailableError
  if (status === 405 || status === 401 || validationCodes.includes(code)) return ValidationError
  return RefusedError
}

/** Parses Retry-After: seconds, or a date. */
function retryAfterOf(headers: Headers): number | undefined {
  const given = headers.get('retry-after')
  if (given === null) return undefined
  const seconds = /^\d+$/.test(given) ? Number(given) : (Date.parse(given) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined
}
