import type { IntakeClosure, IntakeKind } from '@agent-trading-service/protocol/intake-kind'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'

/** Returns the refusal of a request whose kind the operator has closed; undefined while it is open. */
export async function intakeRefusal(
  { intakeSwitches }: Pick<Context, 'intakeSwitches'>,
  kind: IntakeKind,
): Promise<Refusal | undefined> {
  const closure = await intakeSwitches.closureOf(kind)
  return closure && refuse('INTAKE_CLOSED', { kind, reason: closure.reason, since: `${closure.since}` })
}

/** Returns the warnings of a quote whose intake is closed. */
export async function intakeWarnings(
  { intakeSwitches }: Pick<Context, 'intakeSwitches'>,
  kind: IntakeKind,
): Promise<string[]> {
  const closure = await intakeSwitches.closureOf(kind)
  return closure ? [textOf(closure)] : []
}

const textOf = ({ kind, reason }: IntakeClosure) =>
  `A submission is refused with INTAKE_CLOSED: the operator has closed the intake of ${kind}: ${reason}`
