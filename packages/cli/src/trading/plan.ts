import { explainCheck } from '@agent-trading-service/protocol/check-figures'
import { quoteText, type Term } from '@agent-trading-service/protocol/message-terms'
import { Failure } from '../failure.ts'
import { assertWithinDay, assertWithinLimits, enforceLimits, type Spending } from '../limits/enforce-limits.ts'
import { readLimits } from '../limits/limits-file.ts'
import { serviceRemedy } from '../output/service-remedy.ts'
import { isFinal, removePending } from './pending.ts'

/** A rule that the router will apply, as in a quote. */
export type Check = {
  rule: string
  code: string
  pass: boolean
  limit: string | null
  used?: string | null
  after: string | null
  problem?: string
  remedy?: string
}

/** Something that is ready to be signed, after its typed data was compared with the request. */
export type Plan = {
  /** What it does, in words of our own. */
  title: string
  /** The address that signs. */
  signer: string
  /** What is signed, from the message itself. */
  terms: readonly Term[]
  /** What the service says of it. */
  said?: readonly Term[]
  checks: readonly Check[]
  /** What to know before it is signed, in words of our own. */
  warnings: readonly string[]
  typedData: unknown
  digest: string
  /** Set if it buys or registers. */
  spending?: Spending
  /** Set if it can only sell or stop the agent. */
  reducesRisk?: true
  /** Throws while an earlier message of the same agent or key has no known outcome. */
  assertAlone?(): void
  /** Decrypts the key, so that a password is asked for before anything is waited for. */
  unlock(): Promise<unknown>
  /** Signs and submits. */
  send(): Promise<unknown>
}

/**
 * Throws unless every check passes, the limits file allows the plan and no earlier message is pending. Counts nothing.
 */
export function assertAllowed(home: string, plan: Plan): void {
  const { checks, spending } = plan
  plan.assertAlone?.()
  const limits = spending && readLimits(home)
  if (spending && limits) {
    assertWithinLimits(home, limits, spending)
    assertWithinDay(home, limits, spending)
  }
  const failed = checks.find(({ pass }) => !pass)
  if (failed === undefined) return
  const { remedy, ...details } = failed
  throw new Failure('refused', `The check ${failed.rule} fails${explainCheck(failed)}. Nothing was signed.`, {
    code: failed.code,
    remedy: serviceRemedy(failed.code, remedy),
    details,
    isSaid: true,
  })
}

/** Signs and submits a plan, if the limits file allows it. */
export async function carryOut(home: string, plan: Plan): Promise<unknown> {
  assertAllowed(home, plan)
  if (plan.spending) enforceLimits(home, { id: plan.digest, ...plan.spending })
  try {
    const outcome = await plan.send()
    removePending(home, plan.digest)
    return outcome
  } catch (error) {
    if (isFinal(error)) removePending(home, plan.digest)
    throw error
  }
}

/**
 * Describes a plan for the person who decides: first what is signed, then what the service says of it, quoted and cut,
 * so that no text of a service can pass for a term or push one out of sight.
 */
export function describePlan({ title, signer, terms, said = [], checks, warnings }: Plan): string {
  const signed = [...terms, { name: 'signed by', value: signer }]
  const quoted = said.map(({ name, value }) => ({ name, value: quoteText(value) }))
  const width = Math.max(...[...signed, ...quoted].map(({ name }) => name.length))
  const row = ({ name, value }: Term) => `  ${name.padEnd(width)}  ${value}`
  const failed = checks.filter(({ pass }) => !pass)
  return [
    title,
    ...signed.map(row),
    ...warnings.map(warning => `Warning: ${warning}`),
    ...(checks.length === 0 ? [] : [`Checks: ${checks.length - failed.length} of ${checks.length} pass`]),
    ...failed.map(check => `  ${quoteText(check.rule)} fails ${quoteText(explainCheck(check).replace(/^: /, ''))}`),
    ...(quoted.length === 0 ? [] : ['The service says, and nothing proves:', ...quoted.map(row)]),
  ].join('\n')
}
