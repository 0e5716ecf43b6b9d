import type { Address } from 'viem'
import { cleanLines } from '../output/clean.ts'
import type { GroupPlan } from './admin-plan.ts'
import { stepsOf } from './timelock.ts'

/** Returns a plan as JSON shows it. */
export const presentPlan = ({ route, calls, operation, transactions, refusal, note }: GroupPlan) => ({
  route,
  calls,
  operation: operation
    ? {
        id: operation.id,
        state: operation.state,
        readyAt: operation.readyAt ?? null,
        delaySeconds: operation.delaySeconds,
        timelock: operation.timelock,
        calldata: stepsOf(operation),
      }
    : null,
  transactions: transactions.map(({ what, to, data, gas }) => ({ what, to, data, value: '0', gas: gas ?? null })),
  refusal: refusal?.message ?? null,
  note: note ?? null,
})

/** Describes plans for the person who decides; with the calldata if it is sent elsewhere. */
export function describePlans(sender: Address, plans: readonly GroupPlan[], withData: boolean): string {
  const blocks = plans.map(({ route, calls, operation, transactions, refusal, note }) =>
    [
      route === 'timelock' && operation
        ? `Operation ${operation.id} of the timelock, ${operation.state}:`
        : `Sent by ${sender}:`,
      ...calls.flatMap(({ sentence, changes, now }) => [
        `  ${sentence}: ${now}`,
        ...changes.map(({ value, before, after }) => `    ${value}: ${before} -> ${after}`),
      ]),
      ...transactions.flatMap(({ what, to, data, gas }) => [
        `  to send: ${what}, gas ${gas ?? 'estimated when it is sent'}`,
        ...(withData ? [`    to ${to}`, `    data ${data}`] : []),
      ]),
      ...(transactions.length === 0 ? ['  nothing to send'] : []),
      ...(refusal ? [`  refused: ${refusal.message}`] : []),
      ...(note ? [`  ${note}`] : []),
    ].join('\n'),
  )
  // Values come from the chain: they must not move the cursor.
  return cleanLines(blocks.join('\n'))
}
