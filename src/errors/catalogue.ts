import { availabilityErrors } from './availability-errors.ts'
import { contractSetupErrors } from './contract-setup-errors.ts'
import type { ErrorRow } from './error-row.ts'
import { intentErrors } from './intent-errors.ts'
import { limitErrors } from './limit-errors.ts'
import { marketErrors } from './market-errors.ts'
import { paymentErrors } from './payment-errors.ts'
import { promotionErrors } from './promotion-errors.ts'
import { Refusal, toDetails } from './refusal.ts'
import { registrationErrors } from './registration-errors.ts'
import { executionErrors } from './relay-errors.ts'
import { requestErrors } from './request-errors.ts'
import { statusErrors } from './status-errors.ts'
import { tradePolicyErrors } from './trade-policy-errors.ts'

/** Every error a caller can get, by its stable code. Contract errors map onto it in protocol/contract-errors.ts. */
const rows = {
  ...requestErrors,
  ...intentErrors,
  ...executionErrors,
  ...paymentErrors,
  ...registrationErrors,
  ...statusErrors,
  ...limitErrors,
  ...tradePolicyErrors,
  ...promotionErrors,
  ...marketErrors,
  ...availabilityErrors,
  ...contractSetupErrors,
}

export type Code = keyof typeof rows

/** The facts that the refusal of a code needs. */
export type FactsOf<C extends Code> = (typeof rows)[C] extends ErrorRow<infer F> ? F : never

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
export function refuse<C extends Code>(code: C, ...[facts = {}, { cause, retryAfterSeconds } = {}]: Arguments<C>) {
  const { status, sentence, remedy, retryable, retryAfterSeconds: usualWait } = rows[code] as ErrorRow<typeof facts>
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

/** Every code with its status and remedy, for OpenAPI, llms.txt and `svc://errors`. */
export const errorCodes = Object.entries(rows).map(([code, { status, remedy }]) => ({
  code: code as Code,
  status,
  remedy,
}))

export const remedyOf = (code: Code): string => rows[code].remedy
