import type { Check } from '@agent-trading-service/protocol/check'
import type { IntakeClosure, IntakeKind } from '@agent-trading-service/protocol/intake-kind'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { IntentKind } from '../executor/relay-types.ts'

/** The intake that carries each kind of an agent's intents. */
const intakeOfIntent = {
  open: 'buys',
  add: 'buys',
  reduce: 'reductions',
  ladder: 'exitLadders',
} as const satisfies Partial<Record<IntentKind, IntakeKind>>
export type AgentIntentKind = keyof typeof intakeOfIntent

/** Returns the refusal of a request whose kind the operator has closed; undefined while it is open. */
export async function intakeRefusal({ intakeSwitches }: Context, kind: IntakeKind): Promise<Refusal | undefined> {
  const closure = await intakeSwitches.closureOf(kind)
  return closure && refuse('INTAKE_CLOSED', { kind, reason: closure.reason, since: `${closure.since}` })
}

/** The same for an agent's intent. */
export const intakeRefusalOfIntent = (context: Context, kind: AgentIntentKind): Promise<Refusal | undefined> =>
  intakeRefusal(context, intakeOfIntent[kind])

/** Returns the check of a quote that tells whether the intake of the intent is open. */
export async function intakeCheck({ intakeSwitches }: Context, kind: AgentIntentKind): Promise<Check> {
  const closure = await intakeSwitches.closureOf(intakeOfIntent[kind])
  return { rule: 'intake', code: 'INTAKE_CLOSED', pass: closure === undefined }
}

/** Returns the warnings of a quote whose intake is closed. */
export async function intakeWarnings({ intakeSwitches }: Context, kind: IntakeKind): Promise<string[]> {
  const closure = await intakeSwitches.closureOf(kind)
  return closure ? [textOf(closure)] : []
}

const textOf = ({ kind, reason }: IntakeClosure) =>
  `A submission is refused with INTAKE_CLOSED: the operator has closed the intake of ${kind}: ${reason}`
