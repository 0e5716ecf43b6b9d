import type { Hex } from 'viem'
import { timeIfOld } from '../clock.ts'
import { logEvent } from '../log.ts'
import { ignoreUnreachable, logUnexpected } from '../rpc/node-errors.ts'
import { type Submission, type SubmitOptions, sendBatchSize, submit, submitBatch } from '../rpc/submit.ts'
import type { Attempt } from './attempt-table.ts'
import type { ChainHead } from './chain-head.ts'
import { isPendingUntil, observeBlock } from './inclusion-watch.ts'
import { include } from './intent-outcomes.ts'
import type { JournalIntent } from './intent-table.ts'
import type { Lane, WaitingAttempt } from './lane.ts'
import type { Call } from './relay-types.ts'
import { runsStrangersCode } from './requester.ts'
import { cancelGas, signReplacement } from './sign-attempt.ts'
import { callOf, feesOf } from './signing-account.ts'
import type { SimulationResult } from './simulation.ts'

// Sends attempts. The same bytes may be sent any number of times; other bytes are sent only at the same nonce.

/** Smaller groups are sent one by one. */
const MIN_BATCHED = 4
/** While this many sends wait for their receipts, the receipts of others are read from the block. */
const MAX_WAITS_FOR_BLOCK = 4
const MAX_SENDS = 3
const RETRY_DELAY_MS = 250
/** A slower inclusion counts as trouble for the lane's depth. */
const SLOW_INCLUSION_MS = 2_000
/** Give up on the response to a send after this; some nodes never respond. */
const RESPONSE_TIMEOUT_MS = 3_000
/** After this many refusals of an unknown kind a cancellation fills the nonce. */
const MAX_UNCLASSIFIED_REFUSALS = 5

/** Sends an attempt and waits until it is included or the inclusion timeout ends. Reconciliation takes over then. */
export async function sendUntilIncluded(lane: Lane, attempt: Attempt): Promise<void> {
  const deadline = Date.now() + lane.inclusionTimeoutMs
  let isPending = true
  let isAccepted = false
  for (let sends = 1; sends <= MAX_SENDS && isPending; sends++) {
    const submission = await (sends === 1 ? submitWithOthers : submitAlone)(lane, attempt, deadline)
    const isConcluded = await conclude(lane, attempt, submission)
    isAccepted ||= submission.kind === 'accepted'
    if (!isConcluded) await scheduler.wait(Math.min(RETRY_DELAY_MS * sends, Math.max(0, deadline - Date.now())))
    isPending = lane.journal.attempts.isPending(attempt.hash)
    if (isConcluded) break
  }
  if (isPending) isPending = await isPendingUntil(lane, attempt, deadline)
  if (isPending && isAccepted) markSent(lane, attempt)
  if (isPending || Date.now() - attempt.sentAt > SLOW_INCLUSION_MS) lane.inFlightLimit.recordTrouble()
  else lane.inFlightLimit.recordSuccess()
}

/**
 * Resends attempts without waiting for their inclusion, to another node each time. Returns whether the next nonce may
 * follow: the node responded for each and does not lack an earlier nonce.
 */
export async function resend(lane: Lane, attempts: readonly Attempt[], turn = 0): Promise<boolean> {
  const submissions = await submitTogether(lane, attempts, turn)
  for (const [index, attempt] of attempts.entries()) {
    const submission = submissions[index] ?? { kind: 'unknown' }
    await conclude(lane, attempt, submission)
    if (submission.kind === 'accepted') markSent(lane, attempt)
  }
  return submissions.every(({ kind }) => kind !== 'unknown' && kind !== 'nonce-too-high')
}

/**
 * Replaces an attempt that offers less than the fees of the present by the same call with those, and sends it in the
 * background. Returns whether it did: a node that refuses more than it suggests is not outbid.
 */
export async function raiseFee(lane: Lane, attempt: Attempt): Promise<boolean> {
  const { digest, purpose } = attempt
  const head = await lane.followSuggestion().catch(ignoreUnreachable)
  if (head === undefined || !isLatest(lane, attempt)) return false
  const [offered, asked] = [feesOf(attempt.raw), lane.feesAt(head)]
  if (offered.maxFeePerGas >= asked.maxFeePerGas && offered.maxPriorityFeePerGas >= asked.maxPriorityFeePerGas)
    return false
  const intent = digest === null || purpose === 'cancel' ? undefined : lane.journal.intents.find(digest)
  const next = intent?.prices
    ? await renewed(lane, attempt, intent, head)
    : intent && { call: intent.call, gas: attempt.gas }
  if (!isLatest(lane, attempt)) return false
  const replacement = await signReplacement(lane, attempt, next)
  sendUntilIncluded(lane, replacement).catch(logUnexpected)
  return true
}

/**
 * Replaces an attempt whose gas does not pay for its data on L1 any more by one with the gas of the present: nothing
 * else frees its nonce. Cancels one that does not need more gas, or that the chain rejects by now.
 */
async function raiseGas(lane: Lane, attempt: Attempt, reason: string): Promise<void> {
  const { digest, purpose } = attempt
  const intent = digest === null || purpose === 'cancel' ? undefined : lane.journal.intents.find(digest)
  await lane.refreshHead().catch(ignoreUnreachable)
  if (!isLatest(lane, attempt) || lane.head === undefined) return
  if (intent === undefined) {
    if ((await cancelGas(lane)) > attempt.gas) await sendUntilIncluded(lane, await signReplacement(lane, attempt))
    return
  }
  const { call, simulation } = await simulateNow(lane, intent, lane.head, { isFresh: true })
  if (simulation.kind === 'passed' && simulation.gas > attempt.gas && isLatest(lane, attempt))
    return sendUntilIncluded(lane, await signReplacement(lane, attempt, { call, gas: simulation.gas }))
  if (simulation.kind === 'unreachable' || simulation.kind === 'fee too low') return
  await cancel(lane, attempt, simulation.kind === 'rejected' ? simulation.message : reason)
}

/** Simulates an intent's call as it would be sent now. */
export async function simulateNow(
  lane: Lane,
  intent: JournalIntent,
  head: ChainHead,
  { isFresh = false }: { isFresh?: boolean } = {},
): Promise<{ call: Call; simulation: SimulationResult }> {
  const call = await lane.withPrices(intent).catch(() => undefined)
  if (call === undefined) return { call: intent.call, simulation: { kind: 'unreachable' } }
  const simulation = await lane.simulate({
    kind: intent.kind,
    call,
    fees: lane.feesAt(head),
    state: { block: lane.recentBlock, time: timeIfOld({ timestamp: BigInt(head.timestamp) }, lane) },
    isFresh,
    runsStrangersCode: runsStrangersCode(intent),
  })
  return { call, simulation }
}

/**
 * Returns an intent's call with the newest prices and the gas that it needs, or as it was signed while that cannot be
 * known; undefined, and the intent's reason, if the chain rejects it by now: then its nonce must become free.
 */
async function renewed(lane: Lane, { raw, gas }: Attempt, intent: JournalIntent, head: ChainHead) {
  const { call, simulation } = await simulateNow(lane, intent, head)
  if (simulation.kind === 'passed') return { call, gas: simulation.gas }
  if (simulation.kind !== 'rejected') return { call: callOf(raw), gas }
  lane.journal.intents.setReason(intent.digest, simulation.message)
  return undefined
}

/** Replaces an attempt by a zero-value transfer. Whichever of the two is mined decides the intent's outcome. */
export async function cancel(lane: Lane, attempt: Attempt, reason: string): Promise<void> {
  if (attempt.purpose === 'cancel' || !isLatest(lane, attempt)) return
  if (attempt.digest !== null) lane.journal.intents.setReason(attempt.digest, reason)
  await sendUntilIncluded(lane, await signReplacement(lane, attempt))
}

/** Only the latest attempt at a nonce is replaced. */
function isLatest({ journal }: Lane, { nonce, hash }: Attempt): boolean {
  const pending = journal.attempts.atNonce(nonce).filter(({ state }) => state === 'pending')
  return pending.at(-1)?.hash === hash
}

/** Acts on a node's reply. Returns whether sending the same bytes again now is useless. */
async function conclude(lane: Lane, attempt: Attempt, submission: Submission): Promise<boolean> {
  noteRefusal(lane, attempt, submission)
  switch (submission.kind) {
    case 'mined':
      observeBlock(lane, Number(submission.receipt.blockNumber))
      await include(lane, [{ attempt, receipt: submission.receipt }])
      return true
    case 'accepted':
      return true
    case 'unknown':
      return false
    case 'unclassified':
      return (await raiseFee(lane, attempt).catch(logUnexpected)) || cancelAfterRefusals(lane, attempt)
    // Replacements are sent in the background, so that the caller does not wait for their inclusion.
    case 'malformed':
      cancel(lane, attempt, submission.message).catch(logUnexpected)
      return true
    case 'fee-too-low':
      raiseFee(lane, attempt).catch(logUnexpected)
      return true
    case 'gas-too-low':
      raiseGas(lane, attempt, submission.message).catch(logUnexpected)
      return true
    case 'unfunded':
      lane.pauseForFunds(BigInt(attempt.gas) * attempt.maxFee)
      return true
    // A used nonce means that our transaction was mined or that someone else used the key. An underpriced replacement
    // competes with other bytes at its nonce.
    case 'nonce-too-low':
    case 'underpriced':
      lane.inFlightLimit.recordTrouble()
      lane.reconcile().catch(logUnexpected)
      return true
    // The node accepts the same bytes later.
    case 'no-room':
      lane.inFlightLimit.recordTrouble()
      return false
    // An earlier nonce is missing.
    case 'nonce-too-high':
      lane.inFlightLimit.recordTrouble()
      lane.reconcile().catch(logUnexpected)
      return false
  }
}

/** The refusals that end by themselves or by another attempt at the nonce. */
const PASSING: readonly Submission['kind'][] = ['nonce-too-low', 'nonce-too-high', 'underpriced']

/** Remembers the words of a refusal until a node takes the attempt, and logs them. */
function noteRefusal(lane: Lane, { hash, nonce, purpose }: Attempt, submission: Submission) {
  const { refusals, journal } = lane
  for (const known of refusals.keys()) if (!journal.attempts.isPending(known)) refusals.delete(known)
  if (submission.kind === 'unknown') return
  if (!('message' in submission) || PASSING.includes(submission.kind)) {
    refusals.delete(hash)
    return
  }
  const { kind, message } = submission
  refusals.set(hash, { times: (refusals.get(hash)?.times ?? 0) + 1, message })
  if (lane.isAlertDue(`refusal: ${message.replaceAll(/\d+/g, '')}`))
    logEvent('send refused', { executor: lane.address, nonce, purpose, kind, message })
}

/** Returns the words with which a node refuses the transaction that all others wait for; undefined if none does. */
export function refusalOfFirst({ journal, refusals }: Lane): string | undefined {
  const [first] = journal.attempts.pending()
  const latest = first && journal.attempts.atNonce(first.nonce).findLast(({ state }) => state === 'pending')
  return latest && refusals.get(latest.hash)?.message
}

/** Cancels an attempt after several refusals of an unknown kind. Returns whether it did. */
function cancelAfterRefusals(lane: Lane, attempt: Attempt): boolean {
  const refusal = lane.refusals.get(attempt.hash)
  if (refusal === undefined || refusal.times < MAX_UNCLASSIFIED_REFUSALS || attempt.purpose === 'cancel') return false
  cancel(lane, attempt, refusal.message).catch(logUnexpected)
  return true
}

function markSent({ journal }: Lane, { digest }: Attempt) {
  if (digest !== null) journal.intents.markSent(digest)
}

function submitWithOthers(lane: Lane, attempt: Attempt, deadline: number): Promise<Submission> {
  const submission = Promise.withResolvers<Submission>()
  lane.sendFirst({ attempt, deadline, submission })
  return submission.promise
}

/**
 * Sends attempts for the first time. Several at once go in one batch, and their receipts are read from their block. One
 * of them waits for its own receipt, unless another send does: that signals the new block.
 */
export async function sendTogether(lane: Lane, waiting: WaitingAttempt[]): Promise<void> {
  const others = lane.waitsForBlock > 0 ? waiting : waiting.slice(0, -1)
  const size = sendBatchSize(lane.rpc)
  const batch = others.length >= MIN_BATCHED && size > 1 ? others.slice(0, size) : []
  for (const { attempt, deadline, submission } of waiting.filter(one => !batch.includes(one)))
    submission.resolve(submitAlone(lane, attempt, deadline))
  if (batch.length === 0) return
  const submissions = await submitTogether(
    lane,
    batch.map(({ attempt }) => attempt),
  )
  for (const [index, { submission }] of batch.entries()) submission.resolve(submissions[index] ?? { kind: 'unknown' })
}

/** Sends attempts in one batch, to another node each turn, without waiting for their inclusion. */
async function submitTogether({ rpc, beingSent }: Lane, attempts: readonly Attempt[], turn = 0): Promise<Submission[]> {
  for (const { hash } of attempts) beingSent.add(hash)
  try {
    return await submitBatch(rpc, attempts, turn)
  } finally {
    for (const { hash } of attempts) beingSent.delete(hash)
  }
}

/**
 * Sends an attempt and waits for its receipt, if the node supports that; for its acceptance while enough others wait.
 */
async function submitAlone(lane: Lane, attempt: Attempt, deadline: number): Promise<Submission> {
  const waitMs = Math.max(1, deadline - Date.now())
  if (lane.waitsForBlock >= MAX_WAITS_FOR_BLOCK) return submitAttempt(lane, attempt, { waitMs, sync: false })
  lane.waitsForBlock++
  try {
    return await submitAttempt(lane, attempt, { waitMs, sync: true })
  } finally {
    lane.waitsForBlock--
  }
}

async function submitAttempt({ rpc, beingSent }: Lane, attempt: Attempt, options: SubmitOptions): Promise<Submission> {
  beingSent.add(attempt.hash)
  try {
    return await submit(rpc, attempt, options)
  } finally {
    beingSent.delete(attempt.hash)
  }
}

/** Whether a node has the attempt, or may have it. */
export const isBeingSent = ({ beingSent, watched, refusals }: Lane, hash: Hex): boolean =>
  beingSent.has(hash) || (watched.has(hash) && !refusals.has(hash))

/** Whether a node may still respond to a send: a parallel request would only add load. */
export const expectsResponse = (lane: Lane, { hash, sentAt }: Attempt): boolean =>
  isBeingSent(lane, hash) && Date.now() - sentAt < RESPONSE_TIMEOUT_MS
