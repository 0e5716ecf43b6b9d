import type { IntakeKind } from '@agent-trading-service/protocol/intake-kind'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { GasTerms } from '../executor/object.ts'
import { outcomeOfGas, refusalOfUnsent } from '../executor/present-intent.ts'
import type { Requester } from '../executor/relay-types.ts'
import { asEstablished } from './established-owner.ts'
import { type MessageKindName, messageKinds } from './message-kinds.ts'

/** Returns the refusal of a request whose kind the operator has closed; undefined while it is open. */
export async function intakeRefusal(
  { intakeSwitches }: Pick<Context, 'intakeSwitches'>,
  kind: IntakeKind,
): Promise<Refusal | undefined> {
  const closure = await intakeSwitches.closureOf(kind)
  return closure && refuse('INTAKE_CLOSED', { kind, reason: closure.reason, since: `${closure.since}` })
}

/**
 * Returns what the lane of a message says about its gas; undefined if the deployment relays none or the lane is
 * unreachable.
 */
export async function readGasTerms(
  context: Context,
  messageKind: MessageKindName,
  by: Requester,
  { closesPosition = false } = {},
): Promise<GasTerms | undefined> {
  const { lane, kind, protects } = messageKinds[messageKind]
  try {
    const use = { kind, protects, by, closesPosition }
    const terms = await context[lane].gasTerms(use)
    const established = await asEstablished(context, use, terms.budgets.shortage)
    return established ? await context[lane].gasTerms(established) : terms
  } catch {
    return undefined
  }
}

/**
 * Returns the warnings of a quote whose message would be refused now: its intake is closed, or the service does not pay
 * its gas.
 */
export async function submissionWarnings(
  context: Context,
  messageKind: MessageKindName,
  by: Requester,
): Promise<string[]> {
  const [closed, gas] = await Promise.all([
    intakeRefusal(context, messageKinds[messageKind].intake),
    readGasTerms(context, messageKind, by),
  ])
  const unpaid = gas && outcomeOfGas(gas)
  return [closed, unpaid && refusalOfUnsent(unpaid, '0x')].flatMap(refusal =>
    refusal ? [`A submission is refused with ${refusal.body.code}: ${refusal.body.error}`] : [],
  )
}
