import { explainCheck } from '@agent-trading-service/protocol/check-figures'
import { Failure } from '../failure.ts'
import { assertWithinDay, assertWithinLimits, enforceLimits } from '../limits/enforce-limits.ts'
import { readLimits } from '../limits/limits-file.ts'
import { clean } from '../output/clean.ts'
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
  /** What it does, in one sentence. */
  title: string
  /** The address that signs. */
  signer: string
  /** The fields of the message in words. */
  terms: { name: string; value: string }[]
  checks: readonly Check[]
  warnings: readonly string[]
  typedData: unknown
  digest: string
  /** Set if the trade buys: amount in USDC base units. */
  purchase?: { usdc: bigint; symbol: string | undefined }
  /** Set if it can only sell or stop the agent. */
  reducesRisk?: true
  /** Throws while an earlier message of the same agent or key has no known outcome. */
  assertAlone?(): void
  /** Decrypts the key, so that a password is asked for before anything is waited for. */
  unlock(): Promise<unknown>
  /** Signs and submits. */
  send(): Promise<unknown>
}

const MAX_LINE = 500

/** Throws unless every check passes, the limits file allows the plan and no earlier message is pending. Counts nothing. */
export function assertAllowed(home: string, plan: Plan): void {
  const { checks, purchase } = plan
  plan.assertAlone?.()
  const limits = purchase && readLimits(home)
  if (purchase && limits) {
    assertWithinLimits(home, limits, purchase)
    assertWithinDay(home, limits, purchase)
  }
  const failed = checks.find(({ pass }) => !pass)
  if (failed === undefined) return
  const { remedy, ...details } = failed
  throw new Failure('refused', `The check ${failed.rule} fails${explainCheck(failed)}. Nothing was signed.`, {
    code: failed.code,
    remedy: serviceRemedy(failed.code, remedy),
    details,
  })
}

/** Signs and submits a plan, if the limits file allows it. */
export async function carryOut(home: string, plan: Plan): Promise<unknown> {
  assertAllowed(home, plan)
  if (plan.purchase) enforceLimits(home, { id: plan.digest, ...plan.purchase })
  try {
    const outcome = await plan.send()
    removePending(home, plan.digest)
    return outcome
  } catch (error) {
    if (isFinal(error)) removePending(home, plan.digest)
    throw error
  }
}

/** Describes a plan for the person who decides. */
export function describePlan({ title, signer, terms, checks, warnings }: Plan): string {
  const width = Math.max('signed by'.length, ...terms.map(({ name }) => name.length))
  const failed = checks.filter(({ pass }) => !pass)
  return (
    [
      title,
      ...terms.map(({ name, value }) => `  ${name.padEnd(width)}  ${value}`),
      `  ${'signed by'.padEnd(width)}  ${signer}`,
      checks.length === 0 ? undefined : `Checks: ${checks.length - failed.length} of ${checks.length} pass`,
      ...failed.map(check => `  ${check.rule} fails${explainCheck(check)}`),
      ...warnings.map(warning => `Warning: ${warning}`),
    ]
      .filter(line => line !== undefined)
      // Parts of a line come from the service: they must not add lines or change the order of letters.
      .map(line => clean(line).slice(0, MAX_LINE))
      .join('\n')
  )
}
