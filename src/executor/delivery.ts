import type { Hex } from 'viem'
import { isUnreachable } from '../rpc/node-errors.ts'
import { type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import { type Submission, type SubmitOptions, submit } from '../rpc/submit.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Admission } from './admission.ts'
import type { Attempt } from './attempt-table.ts'
import type { Inclusion } from './inclusion.ts'
import { logUnexpected } from './log-failure.ts'
import type { Sequencer } from './nonce-sequencer.ts'
import type { Journal } from './store.ts'

export type Delivery = ReturnType<typeof createDelivery>

const RETRIES = 3
const RETRY_MS = 250
const POLL_MS = [50, 100, 200, 400, 800]
const LONGEST_POLL_MS = 1_600
/** An inclusion that takes longer than this is trouble for the depth. */
const SLOW_MS = 2_000
/** Bytes that were refused this often for a reason that nobody knows will not be taken: another transaction goes first. */
const REFUSALS = 5

/** Brings signed bytes to the chain. The same bytes may be sent any number of times; other bytes only at the same nonce. */
export function createDelivery({
  rpc,
  journal,
  sequencer,
  inclusion,
  admission,
  inclusionTimeoutMs,
  onDisorder,
  onUnfunded,
}: {
  rpc: RpcTransport
  journal: Journal
  sequencer: Sequencer
  inclusion: Inclusion
  admission: Admission
  inclusionTimeoutMs: number
  /** Asks for a reconciliation: the chain and the journal disagree about a nonce. */
  onDisorder: () => void
  /** The account could not pay this many wei. */
  onUnfunded: (cost: bigint) => void
}) {
  /** How often open attempts were refused for an unknown reason. */
  const refusals = new Map<Hex, number>()
  /** The attempts that a node is hearing of at this moment. */
  const onTheWay = new Set<Hex>()

  async function send(attempt: Attempt, options: SubmitOptions): Promise<Submission> {
    onTheWay.add(attempt.hash)
    try {
      return await submit(rpc, attempt.raw, options)
    } finally {
      onTheWay.delete(attempt.hash)
    }
  }

  /** Sends an attempt and follows it until it is included or the wait is over; the reconciliation goes on after that. */
  async function deliver(attempt: Attempt): Promise<void> {
    const until = Date.now() + inclusionTimeoutMs
    let isOpen = true
    for (let tries = 1; tries <= RETRIES && isOpen; tries++) {
      const submission = await send(attempt, { waitMs: Math.max(1, until - Date.now()), sync: true })
      const isOver = await conclude(attempt, submission)
      if (!isOver) await scheduler.wait(Math.min(RETRY_MS * tries, Math.max(0, until - Date.now())))
      isOpen = journal.attempts.isPending(attempt.hash)
      if (isOver) break
    }
    if (isOpen) isOpen = await isOpenAfterPolling(attempt, until)
    if (isOpen || Date.now() - attempt.sentAt > SLOW_MS) admission.trouble()
    else admission.calm()
  }

  /**
   * Sends an attempt's bytes again without waiting for the inclusion; answers whether those of the next nonce may follow: a
   * node said something to these, and misses none before them.
   */
  async function resend(attempt: Attempt): Promise<boolean> {
    const submission = await send(attempt, { waitMs: inclusionTimeoutMs, sync: false })
    await conclude(attempt, submission)
    return submission.kind !== 'unknown' && submission.kind !== 'nonce-too-high'
  }

  /** Acts on what the node said; answers whether sending the same bytes again at once is of no use. */
  async function conclude(attempt: Attempt, submission: Submission): Promise<boolean> {
    if (submission.kind === 'mined') {
      await inclusion.include(attempt, submission.receipt)
      return true
    }
    if (submission.kind === 'accepted') {
      if (attempt.digest !== null) journal.intents.markSent(attempt.digest)
      return true
    }
    if (submission.kind === 'unknown') return false
    if (submission.kind === 'unclassified') return isGivenUp(attempt, submission.message)
    // A replacement is followed on its own: whoever sends in turn must not wait for its inclusion.
    if (submission.kind === 'malformed') {
      cancel(attempt, submission.message).catch(logUnexpected)
      return true
    }
    if (submission.kind === 'fee-too-low') {
      raiseFee(attempt).catch(logUnexpected)
      return true
    }
    if (submission.kind === 'unfunded') onUnfunded(BigInt(attempt.gas) * attempt.maxFee)
    else {
      // A nonce below the chain's is ours and mined, or was used by someone else with our key; one above it misses a
      // predecessor; a replacement that is underpriced competes with bytes that are not these.
      admission.trouble()
      onDisorder()
    }
    return submission.kind !== 'nonce-too-high'
  }

  /** Counts a refusal for an unknown reason; after several the nonce is given to a transfer of nothing. */
  function isGivenUp(attempt: Attempt, reason: string): boolean {
    const count = (refusals.get(attempt.hash) ?? 0) + 1
    if (count < REFUSALS || attempt.purpose === 'cancel') {
      refusals.set(attempt.hash, count)
      return false
    }
    refusals.delete(attempt.hash)
    cancel(attempt, reason).catch(logUnexpected)
    return true
  }

  /** The base fee outgrew the bid: the same call at the same nonce with a higher one. */
  async function raiseFee(attempt: Attempt): Promise<void> {
    const intent =
      attempt.digest === null || attempt.purpose === 'cancel' ? undefined : journal.intents.find(attempt.digest)
    await sequencer.refresh().catch(ignoreUnreachable)
    if (isLatest(attempt)) await deliver(await sequencer.replace(attempt, intent?.call))
  }

  /** Gives the attempt's nonce to a transfer of nothing: whichever of the two is mined decides. */
  async function cancel(attempt: Attempt, reason: string): Promise<void> {
    if (attempt.purpose === 'cancel' || !isLatest(attempt)) return
    if (attempt.digest !== null) journal.intents.setReason(attempt.digest, reason)
    await deliver(await sequencer.replace(attempt))
  }

  const isLatest = ({ nonce, hash }: Attempt) => {
    const open = journal.attempts.atNonce(nonce).filter(({ state }) => state === 'pending')
    return open.at(-1)?.hash === hash
  }

  /** Asks after a receipt until it is there or the wait is over; answers whether the attempt is still open. */
  async function isOpenAfterPolling(attempt: Attempt, until: number): Promise<boolean> {
    for (let turn = 0; journal.attempts.isPending(attempt.hash) && Date.now() < until; turn++) {
      await scheduler.wait(Math.min(POLL_MS[turn] ?? LONGEST_POLL_MS, Math.max(0, until - Date.now())))
      if (!journal.attempts.isPending(attempt.hash)) return false
      const receipt = await receiptOf(attempt)
      if (receipt) await inclusion.include(attempt, receipt)
    }
    return journal.attempts.isPending(attempt.hash)
  }

  async function receiptOf({ hash }: Attempt): Promise<NodeReceipt | null> {
    try {
      return (await rpc.call(receiptRequest(hash))).result ?? null
    } catch (error) {
      ignoreUnreachable(error)
      return null
    }
  }

  return { deliver, resend, raiseFee, cancel, isOnTheWay: (hash: Hex) => onTheWay.has(hash) }
}

/** A node that is away leaves everything as it is: the next reconciliation asks again. */
export function ignoreUnreachable(error: unknown): undefined {
  if (!isUnreachable(error)) throw error
}
