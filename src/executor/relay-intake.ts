import type { Hex } from 'viem'
import { createSharedDeadlines } from '../timeout.ts'
import { logUnexpected } from './background-errors.ts'
import type { GasBudgets } from './gas-budgets.ts'
import type { InFlightLimit, LaneTicket } from './in-flight-limit.ts'
import type { IntentOutcomes } from './intent-outcomes.ts'
import type { JournalIntent } from './intent-table.ts'
import type { PauseRules } from './pause-rules.ts'
import type { RelayOutcome, RelayRequest } from './relay-types.ts'
import type { Journal } from './store.ts'

export type Intake = ReturnType<typeof createIntake>

/** A request that the lane is working on. `receivedAt` is in milliseconds. */
export type OpenRequest = { request: RelayRequest; receivedAt: number }

/** Accepts relay requests: it joins repeated requests, detects conflicts, applies backpressure and awaits outcomes. */
export function createIntake({
  journal,
  inFlightLimit,
  intentOutcomes,
  pauses,
  gasBudgets,
  submit,
  reconcile,
  inclusionTimeoutMs,
  onReceived,
}: {
  journal: Journal
  inFlightLimit: InFlightLimit
  intentOutcomes: IntentOutcomes
  pauses: PauseRules
  gasBudgets: GasBudgets
  submit: (request: RelayRequest, ticket: LaneTicket, deadline: number) => Promise<RelayOutcome | 'in flight'>
  reconcile: () => Promise<void>
  inclusionTimeoutMs: number
  /** Called with the digest of every new request. */
  onReceived: (digest: Hex) => void
}) {
  const withDeadline = createSharedDeadlines()
  const open = new Map<Hex, OpenRequest & { outcome: Promise<RelayOutcome> }>()
  /** The digest that holds a group's nonce until its row is written. */
  const holders = new Map<string, Hex>()

  /**
   * Relays a request. A request with the digest of an open one joins it. The outcome is `unknown` if there is none by
   * `respondBy` (epoch milliseconds); the lane continues to work on it.
   */
  function relay(request: RelayRequest, respondBy?: number): Promise<RelayOutcome> {
    const { digest } = request
    const outcome = open.get(digest)?.outcome ?? start(request)
    return respondBy === undefined ? outcome : unknownAfter(respondBy, digest, outcome)
  }

  function start(request: RelayRequest): Promise<RelayOutcome> {
    const { digest } = request
    const outcome = run(request).finally(() => open.delete(digest))
    open.set(digest, { request, outcome, receivedAt: Date.now() })
    onReceived(digest)
    return outcome
  }

  async function run(request: RelayRequest): Promise<RelayOutcome> {
    const { digest, group, groupNonce } = request
    const deadline = Date.now() + inclusionTimeoutMs
    const { known, holder: journalled } = journal.intents.findWithHolder(request)
    if (known && !isRetryable(known)) return resume(known, deadline)

    const nonceKey = `${group} ${groupNonce}`
    const holder = holders.get(nonceKey) ?? journalled
    if (holder !== undefined && holder !== digest) return { state: 'conflict', digest: holder }
    const foreignUseSeconds = pauses.secondsOfForeignUse()
    if (foreignUseSeconds > 0) return { state: 'paused', retryAfterSeconds: foreignUseSeconds }
    const revertSeconds = pauses.secondsOfRevertWait(request)
    if (revertSeconds > 0) return { state: 'busy', retryAfterSeconds: revertSeconds, why: 'reverts' }
    const shortage = gasBudgets.refuseEarly(request)
    if (shortage) return { state: 'exhausted', shortage }
    const ticket = pauses.isBlocked() ? undefined : inFlightLimit.enter(request)
    if (ticket === undefined) return { state: 'busy', retryAfterSeconds: 1 }

    const release = () => {
      ticket.release()
      gasBudgets.release(digest)
    }
    holders.set(nonceKey, digest)
    let isInFlight = false
    try {
      const result = await submit(request, ticket, deadline)
      if (result !== 'in flight') return known?.state === 'reverted' ? intentOutcomes.storedOutcome(known) : result
      isInFlight = true
      const outcome = intentOutcomes.awaitOutcome(digest)
      void outcome.finally(release)
      return await unknownAfter(deadline, digest, outcome)
    } finally {
      holders.delete(nonceKey)
      if (!isInFlight) release()
    }
  }

  /** Returns the outcome of an intent that was signed before, or waits for it. */
  async function resume(known: JournalIntent, deadline: number): Promise<RelayOutcome> {
    if (known.state === 'mined' || known.state === 'final') return intentOutcomes.storedOutcome(known)
    const outcome = intentOutcomes.awaitOutcome(known.digest)
    reconcile().catch(logUnexpected)
    return unknownAfter(deadline, known.digest, outcome)
  }

  const unknownAfter = (deadline: number, digest: Hex, outcome: Promise<RelayOutcome>): Promise<RelayOutcome> =>
    withDeadline(outcome, deadline, (): RelayOutcome => {
      const hash = journal.attempts.ofIntent(digest).at(-1)?.hash
      return { state: 'unknown', ...(hash !== undefined && { hash }) }
    })

  /** Admits the intents that were in flight before a restart. Returns whether there are any. */
  function readmit(): boolean {
    const unsettled = journal.intents.unsettled()
    for (const { digest, group, kind, spenders } of unsettled) {
      const gas = Math.max(0, ...journal.attempts.ofIntent(digest).map(attempt => attempt.gas))
      gasBudgets.hold(digest, spenders, gas)
      const ticket = inFlightLimit.enter({ group, kind })
      void intentOutcomes.awaitOutcome(digest).finally(() => {
        ticket?.release()
        gasBudgets.release(digest)
      })
    }
    return unsettled.length > 0
  }

  return { relay, readmit, find: (digest: Hex): OpenRequest | undefined => open.get(digest) }
}

/** Whether an intent was not executed and is not in flight, so that it may be relayed again. */
export const isRetryable = ({ state }: Pick<JournalIntent, 'state'>): boolean =>
  state === 'rejected' || state === 'reverted'
