import type { Facts } from './refusal.ts'

/** What the catalogue holds for one code. `retryable` says that the identical request can succeed later. */
export type ErrorRow<F extends Facts = never> = {
  status: 400 | 401 | 402 | 404 | 405 | 408 | 409 | 413 | 429 | 500 | 502 | 503
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

/** Declares a row whose refusal takes the facts `F`. */
export const row = <F extends Facts = Record<never, never>>(definition: ErrorRow<F>): ErrorRow<F> => definition
