import { type Code, errorRows, type FactsOf } from './catalogue.ts'
import { type ErrorRow, Refusal, toDetails } from './refusal.ts'
import { shortenFacts } from './shorten-facts.ts'

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
    retryAfterSeconds: usualWait,
  } = errorRows[code] as ErrorRow<typeof facts>
  const details = toDetails(facts)
  const wait = retryAfterSeconds ?? usualWait
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

/** Returns an error as a refusal: itself if it is one, otherwise INTERNAL with the error as its cause. */
export const toRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : refuse('INTERNAL', {}, { cause: error })
