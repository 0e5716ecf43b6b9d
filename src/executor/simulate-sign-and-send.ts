import type { AttemptSigner } from './assign-nonce-and-sign.ts'
import { ignoreUnreachable, logUnexpected } from './background-errors.ts'
import type { ChainHead, HeadCache } from './chain-head.ts'
import type { GasBudgets } from './gas-budgets.ts'
import type { LaneTicket } from './in-flight-limit.ts'
import type { LaneAlarm } from './lane-alarm.ts'
import type { PauseRules } from './pause-rules.ts'
import type { RelayOutcome, RelayRequest } from './relay-types.ts'
import type { AttemptSender } from './send-until-included.ts'
import type { Simulate } from './simulation.ts'
import type { Journal } from './store.ts'
import { feesAt } from './transaction-fees.ts'

/** The maximum age of the head from which fees and balance are taken. */
const MAX_HEAD_AGE_MS = 10_000
const MAX_HEAD_AGE_WITHOUT_FUNDS_MS = 1_000
/** The gas to require if the simulation fails for lack of funds, because the actual need is then unknown. */
const TYPICAL_GAS = 500_000n

/**
 * Returns a function that takes an admitted intent through simulation, funding and signing, and starts to send it. It
 * resolves with `in flight`, or with the outcome if the intent was not signed. The deadline is in epoch milliseconds.
 */
export function createSubmitter({
  journal,
  heads,
  attemptSigner,
  simulate,
  sender,
  pauses,
  gasBudgets,
  alarm,
  priorityFeeWei,
}: {
  journal: Journal
  heads: HeadCache
  attemptSigner: AttemptSigner
  simulate: Simulate
  sender: AttemptSender
  pauses: PauseRules
  gasBudgets: GasBudgets
  alarm: LaneAlarm
  priorityFeeWei: bigint
}) {
  function pauseForFunds(cost: bigint): RelayOutcome {
    pauses.pauseForFunds(cost)
    heads.expire() // its balance is outdated
    return { state: 'unfunded' }
  }

  const canPay = ({ balance }: ChainHead, cost: bigint) => balance >= journal.attempts.pendingCost() + cost

  return async (request: RelayRequest, ticket: LaneTicket, deadline: number): Promise<RelayOutcome | 'in flight'> => {
    if (!(await ticket.waitForTurn(deadline)) || !(await ticket.waitForSlot(deadline)))
      return { state: 'busy', retryAfterSeconds: 1 }
    const maxAgeMs = pauses.lacksFunds() ? MAX_HEAD_AGE_WITHOUT_FUNDS_MS : MAX_HEAD_AGE_MS
    const head = await heads.within(maxAgeMs).catch(ignoreUnreachable)
    if (head === undefined) return { state: 'unsent' }
    pauses.resumeIfFunded(head)
    if (pauses.lacksFunds()) return { state: 'unfunded' }

    const fees = feesAt(head, priorityFeeWei)
    const simulation = await simulate(request.kind, request.call, fees)
    if (simulation.kind === 'unreachable') return { state: 'unsent' }
    if (simulation.kind === 'unfunded') return pauseForFunds(fees.maxFeePerGas * TYPICAL_GAS)
    if (simulation.kind === 'rejected') {
      const { data, message } = simulation
      // An earlier revert stays on record until a later attempt is executed.
      if (journal.intents.find(request.digest)?.state !== 'reverted')
        journal.intents.reject(request, { data, reason: message })
      await alarm.armForPruning()
      return { state: 'rejected', message, ...(data !== undefined && { data }) }
    }

    const cost = BigInt(simulation.gas) * fees.maxFeePerGas
    if (!canPay(head, cost)) {
      const fresh = await heads.refresh().catch(ignoreUnreachable)
      if (fresh === undefined) return { state: 'unsent' }
      if (!canPay(fresh, cost)) return pauseForFunds(cost)
    }
    const spenders = gasBudgets.reserve(request.digest, request, simulation.gas)
    if (!Array.isArray(spenders)) return { state: 'exhausted', shortage: spenders }
    const attempt = await attemptSigner.prepare({ ...request, spenders }, simulation.gas)
    void alarm.armForPending()
    sender.send(attempt).catch(logUnexpected)
    return 'in flight'
  }
}
