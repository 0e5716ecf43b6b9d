import type {
  CodeOfError,
  ContractErrorCode,
  ErrorFacts,
  ErrorName,
} from '@agent-trading-service/protocol/decode-revert'

/** The named facts of a refusal: what was given, what was expected, which limit applies. */
export type Facts = Record<string, unknown>

/** The JSON body of a refusal, the same over HTTP and MCP. The surface adds the request id. */
export type RefusalBody = {
  error: string
  code: string
  details?: Facts
  remedy: string
  retryable?: boolean
  retryAfterSeconds?: number
}

/** The x402 objects that accompany a response: what must be paid (PaymentRequired), what was paid (SettleResponse). */
export type PaymentAnswer = { required?: object; response?: object }

/** An error that the caller gets: its HTTP status and body. The `cause` is only logged. */
export class Refusal extends Error {
  readonly status: number
  readonly body: RefusalBody
  payment: PaymentAnswer | undefined
  constructor(status: number, body: RefusalBody, cause?: unknown) {
    super(body.error, { cause })
    this.name = 'Refusal'
    this.status = status
    this.body = body
  }

  /** Returns a copy with more facts in `details`. */
  withDetails(facts: Facts): Refusal {
    const details = toDetails({ ...this.body.details, ...facts })
    return new Refusal(this.status, { ...this.body, ...(details !== undefined && { details }) }, this.cause)
  }

  /** Returns a copy with another remedy, for a caller whose situation the catalogue cannot know. */
  withRemedy(remedy: string): Refusal {
    return new Refusal(this.status, { ...this.body, remedy }, this.cause)
  }
}

/** Returns facts in their wire form: bigints as digit strings, without undefined values; undefined if none is left. */
export function toDetails(facts: Facts): Facts | undefined {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined)
  if (known.length === 0) return undefined
  return Object.fromEntries(known.map(([name, value]) => [name, typeof value === 'bigint' ? `${value}` : value]))
}

/** What the catalogue holds for one code. `retryable` says that the identical request can succeed later. */
export type ErrorRow<F extends Facts = never> = {
  status: 400 | 401 | 402 | 404 | 405 | 408 | 409 | 413 | 415 | 429 | 500 | 502 | 503
  /** Says what is wrong with which value, and what was expected. */
  sentence: (facts: F) => string
  /** Says what to do next. */
  remedy: string
  /** The remedy over MCP, if the one above is about HTTP. Endpoints that it names become tools by themselves. */
  toolRemedy?: string
  retryable?: true
  retryAfterSeconds?: number
  /** The log level of a refusal with a status from 500 on; `error` unless callers can cause it at will. */
  level?: 'warn'
}

type RowDefinition<F extends Facts> = Omit<ErrorRow<F>, 'status'> & Partial<Pick<ErrorRow<F>, 'status'>>

/** Declares a row whose refusal takes the facts `F`: status 400 unless it has another, retryable if it has a wait. */
export const row = <F extends Facts = Record<never, never>>(definition: RowDefinition<F>): ErrorRow<F> => ({
  status: 400,
  ...(definition.retryAfterSeconds !== undefined && { retryable: true }),
  ...definition,
})

type FactsOfCode<C> = {
  [Name in ErrorName]: CodeOfError<Name> extends C ? ErrorFacts<Name> : never
}[ErrorName]
type Problems = { [C in ContractErrorCode]?: (facts: FactsOfCode<C>) => string }

/** Declares rows of contract errors that say one thing and differ in the problem. Their facts are those of the ABI. */
export const contractRows = <P extends Problems>(
  { sentence, ...common }: Omit<RowDefinition<never>, 'sentence'> & { sentence: (problem: string) => string },
  problems: P,
) =>
  Object.fromEntries(
    Object.entries<(facts: never) => string>(problems).map(([code, problem]) => [
      code,
      row({ ...common, sentence: (facts: never) => sentence(problem(facts)) }),
    ]),
  ) as { [C in keyof P]: ErrorRow<FactsOfCode<C>> }
