import type { Hex } from 'viem'
import { newest } from '../chain/min-blocks.ts'
import { timeIfOld } from '../clock.ts'
import { Refusal } from '../errors/refusal.ts'
import { toRefusal } from '../errors/refuse.ts'
import { ignoreUnreachable, logUnexpected } from '../rpc/node-errors.ts'
import type { ChainHead } from './chain-head.ts'
import { priceWithL1, refusalOfPrice, weightOfGas } from './gas-price.ts'
import type { LaneTicket } from './in-flight-limit.ts'
import { awaitOutcome, storedOutcome } from './intent-outcomes.ts'
import { type JournalIntent, toAdmitted } from './intent-table.ts'
import type { Lane } from './lane.ts'
import { isBlocked, secondsOfForeignUse, secondsOfRevertWait } from './pause-rules.ts'
import { confirmBlocks } from './reconcile.ts'
import type { RelayOutcome, RelayRequest } from './relay-types.ts'
import { groupOf, runsStrangersCode, spendersOf } from './requester.ts'
import { sendUntilIncluded } from './send-attempt.ts'
import { signAtNextNonce } from './sign-attempt.ts'

// The way of an intent through its lane:
// 1. `relay` joins a repeated request, refuses what the lane does not accept now, and waits for the outcome.
// 2. `submit` waits for the group's turn and a slot, simulates, checks funds and gas budgets, assigns a nonce, signs
//    and journals in one turn (sign-attempt.ts), and starts to send.
// 3. send-attempt.ts sends until the transaction is included, and replaces it if a node can never accept it;
//    inclusion-watch.ts finds its receipt.
// 4. intent-outcomes.ts journals the receipt and resolves the outcome.
// 5. reconcile.ts compares what is still pending with the chain, also after a restart or a reorg, and resends,
//    replaces, fills, signs again or rejects it.

/** The maximum age of the head from which fees and balance are taken. */
const MAX_HEAD_AGE_MS = 10_000
const MAX_HEAD_AGE_WITHOUT_FUNDS_MS = 1_000
/**
 * A body that reverted may be relayed again, because it may succeed later; this often in all, because anyone can post
 * it and its signer's budgets pay.
 */
const MAX_REVERTS_PER_BODY = 2
/** The gas to require if the simulation fails for lack of funds, because the actual need is then unknown. */
const TYPICAL_GAS = 500_000n

/**
 * Relays a request. A request with the digest of an open one joins it. The outcome is `unknown` if there is none by
 * `respondBy` (epoch milliseconds); the lane continues to work on it.
 */
export function relay(lane: Lane, request: RelayRequest, respondBy?: number): Promise<RelayOutcome> {
  const { digest } = request
  const outcome = lane.open.get(digest)?.outcome ?? start(lane, request)
  return respondBy === undefined ? outcome : unknownAfter(lane, respondBy, digest, outcome)
}

function start(lane: Lane, request: RelayRequest): Promise<RelayOutcome> {
  const { digest } = request
  const outcome = run(lane, request).finally(() => lane.open.delete(digest))
  lane.open.set(digest, { request, outcome, receivedAt: Date.now() })
  lane.onChange(digest, 'received')
  return outcome
}

async function run(lane: Lane, request: RelayRequest): Promise<RelayOutcome> {
  const { journal, gasBudgets, nonceHolders } = lane
  const { digest, groupNonce } = request
  const deadline = Date.now() + lane.inclusionTimeoutMs
  const { known, holder: journalled } = journal.intents.findWithHolder(request)
  if (known && !isRetryable(known)) return resume(lane, known, deadline)
  if (known?.state === 'reverted' && revertsOf(lane, digest) >= MAX_REVERTS_PER_BODY) return storedOutcome(lane, known)

  const nonceKey = `${known?.group ?? groupOf(request)} ${groupNonce}`
  const holder = nonceHolders.get(nonceKey) ?? journalled
  if (holder !== undefined && holder !== digest) return { state: 'conflict', digest: holder }
  const ticket = enter(lane, request)
  if ('state' in ticket) return ticket

  const release = () => {
    ticket.release()
    gasBudgets.release(digest)
  }
  nonceHolders.set(nonceKey, digest)
  let isInFlight = false
  try {
    const result = await submit(lane, request, ticket, deadline)
    // Only its signer has a body that was never sent. Others may repeat one that was, and must not spend the signer's
    // budgets.
    if (result !== 'in flight' && result.state === 'rejected' && journal.attempts.ofIntent(digest).length === 0)
      gasBudgets.chargeFailure(request)
    if (result !== 'in flight') return known?.state === 'reverted' ? storedOutcome(lane, known) : result
    isInFlight = true
    const outcome = awaitOutcome(lane, digest)
    void outcome.finally(release)
    return await unknownAfter(lane, deadline, digest, outcome)
  } finally {
    nonceHolders.delete(nonceKey)
    if (!isInFlight) release()
  }
}

const revertsOf = ({ journal }: Lane, digest: Hex): number =>
  journal.attempts.ofIntent(digest).filter(({ state }) => state === 'reverted').length

/** Returns the outcome of an intent that was signed before, or waits for it. */
async function resume(lane: Lane, known: JournalIntent, deadline: number): Promise<RelayOutcome> {
  if (known.state === 'mined' || known.state === 'final') {
    const stored = await storedOutcome(lane, known)
    if (stored.state !== 'unknown' || known.state === 'final') return stored
    await confirmBlocks(lane) // its receipt is gone
    if (lane.journal.intents.find(known.digest)?.state === 'mined') return storedOutcome(lane, known)
  }
  const outcome = awaitOutcome(lane, known.digest)
  lane.reconcile().catch(logUnexpected)
  return unknownAfter(lane, deadline, known.digest, outcome)
}

/** Gives a request its place in the lane, or says why the lane does not accept it now. */
function enter(
  { journal, reverts, gasBudgets, inFlightLimit }: Lane,
  request: RelayRequest,
): LaneTicket | RelayOutcome {
  const foreignUseSeconds = secondsOfForeignUse(journal)
  if (foreignUseSeconds > 0) return { state: 'paused', retryAfterSeconds: foreignUseSeconds }
  const revertSeconds = secondsOfRevertWait(reverts, request)
  if (revertSeconds > 0) return { state: 'busy', retryAfterSeconds: revertSeconds, why: 'reverts' }
  const usedGas = gasBudgets.usedBy(request)
  const shortage = gasBudgets.admit(request.digest, request)
  if (shortage) return { state: 'exhausted', shortage }
  const ticket = isBlocked(journal)
    ? undefined
    : inFlightLimit.enter({ group: groupOf(request), kind: request.kind }, usedGas)
  if (ticket) return ticket
  gasBudgets.release(request.digest)
  return { state: 'busy', retryAfterSeconds: 1 }
}

/**
 * Takes an admitted intent through simulation, funding and signing, and starts to send it. Resolves with `in flight`,
 * or with the outcome if the intent was not signed. The deadline is in epoch milliseconds.
 */
async function submit(
  lane: Lane,
  request: RelayRequest,
  ticket: LaneTicket,
  deadline: number,
): Promise<RelayOutcome | 'in flight'> {
  const { journal, alarm } = lane
  if (!(await ticket.waitForTurn(deadline)) || !(await ticket.waitForSlot(deadline)))
    return { state: 'busy', retryAfterSeconds: 1 }
  const maxAgeMs = lane.lacksFunds ? MAX_HEAD_AGE_WITHOUT_FUNDS_MS : MAX_HEAD_AGE_MS
  let head = await lane.headWithin(maxAgeMs).catch(ignoreUnreachable)
  if (head === undefined) return { state: 'unsent' }
  lane.resumeIfFunded(head)
  if (lane.lacksFunds) return { state: 'unfunded' }

  const priceRefusal = refusalOfPrice(request, lane.gasPriceAt(head), lane.gasPrices)
  if (priceRefusal) return priceRefusal
  let fees = lane.feesAt(head)
  const call = await lane.withPrices(request).catch(toRefusal)
  if (call instanceof Refusal) return unpriced(call)
  const { kind, by } = request
  const runsCode = runsStrangersCode({ kind, spenders: spendersOf(by) })
  const simulateAt = (at: ChainHead, block?: bigint) => {
    const state = { block, time: timeIfOld({ timestamp: BigInt(at.timestamp) }, lane) }
    return lane.simulate({ kind, call, fees, state, runsStrangersCode: runsCode })
  }
  let simulation = await simulateAt(head)
  if (simulation.kind === 'fee too low') {
    head = await lane.refreshHead().catch(ignoreUnreachable)
    if (head === undefined) return { state: 'unsent' }
    fees = lane.feesAt(head)
    simulation = await simulateAt(head)
  }
  // A replica that is behind does not refuse an intent: the newest block that anybody has seen decides.
  if (simulation.kind === 'rejected') {
    const fresh = (await lane.refreshHead().catch(ignoreUnreachable)) ?? head
    const block = newest(request.checkedAt, lane.recentBlock, BigInt(fresh.number))
    simulation = await simulateAt(fresh, block)
  }
  if (simulation.kind === 'unreachable' || simulation.kind === 'fee too low') return { state: 'unsent' }
  if (simulation.kind === 'unfunded') return pauseForFunds(lane, fees.maxFeePerGas * TYPICAL_GAS)
  if (simulation.kind === 'rejected') {
    const { data, message } = simulation
    journal.intents.reject(request, { data, reason: message })
    await alarm.armForPruning()
    return { state: 'rejected', message, ...(data !== undefined && { data }) }
  }

  const gasPriceWei = priceWithL1(lane.gasPriceAt(head), simulation)
  const priceRefusalWithL1 = refusalOfPrice(request, gasPriceWei, lane.gasPrices)
  if (priceRefusalWithL1) return priceRefusalWithL1
  const cost = BigInt(simulation.gas) * fees.maxFeePerGas
  if (!canPay(lane, head, cost)) {
    const fresh = await lane.refreshHead().catch(ignoreUnreachable)
    if (fresh === undefined) return { state: 'unsent' }
    if (!canPay(lane, fresh, cost)) return pauseForFunds(lane, cost)
  }
  const spenders = lane.gasBudgets.reserve(
    request.digest,
    request,
    simulation.l2Gas,
    weightOfGas(gasPriceWei, lane.gasPrices),
  )
  if (!Array.isArray(spenders)) return { state: 'exhausted', shortage: spenders }
  const attempt = await signAtNextNonce(lane, toAdmitted(request, spenders), { call, gas: simulation.gas })
  void alarm.passOften()
  sendUntilIncluded(lane, attempt).catch(logUnexpected)
  return 'in flight'
}

const unpriced = ({ body }: Refusal): RelayOutcome => ({
  state: 'unpriced',
  problem: `${body.details?.problem ?? 'it cannot be read'}`,
})

function pauseForFunds(lane: Lane, cost: bigint): RelayOutcome {
  lane.pauseForFunds(cost)
  return { state: 'unfunded' }
}

const canPay = ({ journal }: Lane, { balance }: ChainHead, cost: bigint): boolean =>
  balance >= journal.attempts.pendingCost() + cost

const unknownAfter = (
  { journal, refusals, withDeadline }: Lane,
  deadline: number,
  digest: Hex,
  outcome: Promise<RelayOutcome>,
): Promise<RelayOutcome> =>
  withDeadline(outcome, deadline, (): RelayOutcome => {
    const hash = journal.attempts.ofIntent(digest).findLast(({ hash }) => !refusals.has(hash))?.hash
    return { state: 'unknown', ...(hash !== undefined && { hash }) }
  })

/** Admits the intents that were in flight before a restart. Returns whether there are any. */
export function readmit(lane: Lane): boolean {
  const { journal, gasBudgets, inFlightLimit } = lane
  // A process that was killed may have signed or journalled more than the history database got.
  void lane.storeNotes(journal.intents.openNotes())
  const unsettled = journal.intents.unsettled()
  for (const { digest, group, kind, spenders } of unsettled) {
    const gas = Math.max(0, ...journal.attempts.ofIntent(digest).map(attempt => attempt.gas))
    gasBudgets.hold(digest, spenders, gas)
    const ticket = inFlightLimit.enter({ group, kind })
    void awaitOutcome(lane, digest).finally(() => {
      ticket?.release()
      gasBudgets.release(digest)
    })
  }
  return unsettled.length > 0
}

/** Whether an intent was not executed and is not in flight, so that it may be relayed again. */
export const isRetryable = ({ state }: Pick<JournalIntent, 'state'>): boolean =>
  state === 'rejected' || state === 'reverted'
