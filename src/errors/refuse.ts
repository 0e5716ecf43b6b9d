import { shorten } from '@agent-trading-service/protocol/shorten'
import { showUnseen } from '@agent-trading-service/protocol/unseen-text'
import { type Code, errorRows, type FactsOf } from './catalogue.ts'
import { type ErrorRow, Refusal, toDetails } from './refusal.ts'

/** Facts that the service writes itself. */
const WRITTEN_HERE = ['problem', 'reason']
/** Longer than a hash. */
const MAX_FACT = 80

const shortenFact = (value: string) => (value.length > MAX_FACT ? shorten(value) : showUnseen(value))

/** Returns facts with the texts of the caller shortened. */
const shortenFacts = <F extends Record<string, unknown>>(facts: F): F =>
  Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === 'string' && !WRITTEN_HERE.includes(name) ? shortenFact(value) : value,
    ]),
  ) as F

type Options = {
  /** For the log only: a cause's message can contain RPC URLs. */
  cause?: unknown
  /** Replaces the catalogue's wait. */
  retryAfterSeconds?: number | undefined
}
type Arguments<C extends Code> = keyof FactsOf<C> extends never
  ? [facts?: Record<string, never>, options?: Options]
  : [facts: FactsOf<C>, options?: Options]

/** Makes the refusal of a code from its facts, which also go out as `details`. */
export function refuse<C extends Code>(code: C, ...[given = {}, { cause, retryAfterSeconds } = {}]: Arguments<C>) {
  const facts = shortenFacts(given)
  const {
    status,
    sentence,
    remedy,
    retryable,
    retryAfterSeconds: defaultWait,
  } = errorRows[code] as ErrorRow<typeof facts>
  const details = toDetails(facts)
  const wait = retryAfterSeconds ?? defaultWait
  return new Refusal(
    status,
    {
      error: sentence(facts),
      code,
      ...(details !== undefined && { details }),
      remedy,
      ...(retryable && { retryable }),
      ...(wait !== undefined && { retryAfterSeconds: wait }),
    },
    cause,
  )
}

/** Makes the refusal of a request whose fields parse and do not go together. */
export const malformed = (problem: string): Refusal =>
  refuse('INVALID_REQUEST', { problem, problems: [{ path: '', problem }] })

/** Returns an error as a refusal: itself if it is one, otherwise INTERNAL with the error as its cause. */
export const toRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : refuse('INTERNAL', {}, { cause: error })
