import { type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'
import { logEvent } from '../log.ts'
import { intakeChange, intakeState, presentIntake } from '../resources/intake.ts'
import { assertOperator } from './bearer-check.ts'
import { defineOperation } from './define-operation.ts'

// No tools: a model that trades has no business with them.

export const getIntake = defineOperation(
  {
    id: 'getIntake',
    method: 'get',
    path: '/operator/intake',
    tag: 'Operator',
    summary: 'Show which kinds of intake are open',
    description:
      "Returns every kind of intake and whether it is open. Requires the operator's secret as a bearer token.",
    security: 'operator',
    cache: 'none',
    status: 200,
    output: intakeState,
    errors: [401, 503],
  },
  async (context, _, call) => {
    assertOperator(context, call)
    return presentIntake(await context.intakeSwitches.closures())
  },
)

export const setIntake = defineOperation(
  {
    id: 'setIntake',
    method: 'put',
    path: '/operator/intake',
    tag: 'Operator',
    summary: 'Close or open kinds of intake',
    description:
      "Closes or opens the named kinds of intake; the others stay as they are. It is in force in all isolates after two seconds, without a deploy, and stays until it is changed. A request of a closed kind is refused with INTAKE_CLOSED and the reason; what was accepted before is completed, and reads go on. Requires the operator's secret as a bearer token.",
    security: 'operator',
    body: intakeChange,
    readsOnly: true,
    cache: 'none',
    status: 200,
    output: intakeState,
    errors: [401, 503],
  },
  async (context, given, call) => {
    assertOperator(context, call)
    const changes = (Object.keys(intakeKinds) as IntakeKind[]).flatMap(kind => {
      const change = given[kind]
      return change ? [{ kind, reason: change.open ? null : (change.reason ?? '') }] : []
    })
    const closures = await context.intakeSwitches.change(changes)
    logEvent('intake changed', { closed: closures.map(({ kind }) => kind).join(' ') || 'none' })
    return presentIntake(closures)
  },
)
