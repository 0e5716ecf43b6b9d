import { type IntakeClosure, type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'
import { z } from 'zod'
import { present } from './present.ts'
import { unixSeconds } from './primitives.ts'

const kinds = Object.keys(intakeKinds) as [IntakeKind, ...IntakeKind[]]
const kind = z.enum(kinds)
const reason = z.string().describe('Why it is closed, as callers read it')
const since = unixSeconds('When it was closed')

/** A kind of intake that is closed. */
export const intakeClosure = z.object({ kind, reason, since }).meta({ id: 'IntakeClosure' })

/** Every kind of intake. */
export const intakeState = z
  .object({
    intake: z.array(
      z
        .object({ kind, covers: z.string(), open: z.boolean(), reason: reason.nullable(), since: since.nullable() })
        .meta({ id: 'IntakeKind' }),
    ),
  })
  .meta({ id: 'IntakeState' })

/** The kinds to change; absent kinds stay as they are. */
export const intakeChange = z.object(
  Object.fromEntries(
    kinds.map(name => [
      name,
      z
        .strictObject({ open: z.boolean(), reason: z.string().min(1).max(300).optional() })
        .refine(({ open, reason }) => open || reason !== undefined, 'must have a reason to be closed')
        .optional()
        .meta({ description: intakeKinds[name], example: { open: false, reason: 'The venue is down.' } }),
    ]),
  ) as Record<IntakeKind, z.ZodOptional<z.ZodObject<{ open: z.ZodBoolean; reason: z.ZodOptional<z.ZodString> }>>>,
)

export const presentClosure = (closure: IntakeClosure): z.input<typeof intakeClosure> => present(intakeClosure, closure)

export function presentIntake(closures: readonly IntakeClosure[]): z.input<typeof intakeState> {
  return {
    intake: kinds.map(kind => {
      const closure = closures.find(closed => closed.kind === kind)
      return {
        kind,
        covers: intakeKinds[kind],
        open: closure === undefined,
        reason: closure?.reason ?? null,
        since: closure ? `${closure.since}` : null,
      }
    }),
  }
}
