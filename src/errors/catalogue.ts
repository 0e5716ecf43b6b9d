import { availabilityErrors, relayErrors } from './availability-errors.ts'
import { contractSetupErrors } from './contract-setup-errors.ts'
import { intentErrors } from './intent-errors.ts'
import { orderErrors } from './order-errors.ts'
import { mandateErrors, webhookErrors } from './owner-errors.ts'
import type { ErrorRow } from './refusal.ts'
import { paymentErrors, promotionErrors, registrationErrors } from './registration-errors.ts'
import { requestErrors } from './request-errors.ts'
import { marketErrors, riskLimitErrors, statusErrors, tradePolicyErrors } from './trading-errors.ts'

/**
 * Every error a caller can get, by its stable code. Contract errors map onto it in chain/contract-error-refusals.ts.
 */
export const errorRows = {
  ...requestErrors,
  ...intentErrors,
  ...relayErrors,
  ...paymentErrors,
  ...registrationErrors,
  ...statusErrors,
  ...riskLimitErrors,
  ...tradePolicyErrors,
  ...mandateErrors,
  ...orderErrors,
  ...promotionErrors,
  ...marketErrors,
  ...webhookErrors,
  ...availabilityErrors,
  ...contractSetupErrors,
}

export type Code = keyof typeof errorRows

/** The facts that the refusal of a code needs. */
export type FactsOf<C extends Code> = (typeof errorRows)[C] extends ErrorRow<infer F> ? F : never

/** Every code with its status and remedy, for OpenAPI, llms.txt and `svc://errors`. */
export const errorCodes = Object.entries(errorRows).map(([code, { status, remedy }]) => ({
  code: code as Code,
  status,
  remedy,
}))

export const remedyOf = (code: Code): string => errorRows[code].remedy

/** Returns the level at which refusals of a code are logged. */
export const levelOf = (code: string): 'error' | 'warn' =>
  (Object.hasOwn(errorRows, code) && (errorRows[code as Code] as ErrorRow).level) || 'error'
