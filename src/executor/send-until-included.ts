import type { Hex } from 'viem'
import { createBatcher } from '../rpc/batcher.ts'
import { type Submission, type SubmitOptions, sendBatchSize, submit, submitBatch } from '../rpc/submit.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { AttemptSigner } from './assign-nonce-and-sign.ts'
import type { Attempt } from './attempt-table.ts'
import { logUnexpected } from './background-errors.ts'
import type { HeadCache } from './chain-head.ts'
import type { InFlightLimit } from './in-flight-limit.ts'
import { createInclusionWatch } from './inclusion-watch.ts'
import type { IntentOutcomes } from './intent-outcomes.ts'
import { createAttemptReplacer } from './replace-attempt.ts'
import type { Journal } from './store.ts'

type WaitingAttempt = { attempt: Attempt; deadline: number; submission: PromiseWithResolvers<Submission> }

export type AttemptSender = ReturnType<typeof createAttemptSender>

/** Smaller groups are sent one by one. */
const MIN_BATCHED = 4
/** While this many sends wait for their receipts, the receipts of others are read from the block. */
const MAX_WAITS_FOR_BLOCK = 4
const MAX_SENDS = 3
const RETRY_DELAY_MS = 250
/** A slower inclusion counts as trouble for the lane's depth. */
const SLOW_INCLUSION_MS = 2_000
/** How long to wait for the response to a send. After that, it may never come. */
const RESPONSE_TIMEOUT_MS = 3_000
/** After this many errors of an unknown kind a cancellation fills the nonce. */
const MAX_UNCLASSIFIED_ERRORS = 5

/** Sends attempts. The same bytes may be sent any number of times; other bytes are sent only at the same nonce. */
export function createAttemptSender({
  rpc,
  journal,
  heads,
  attemptSigner,
  intentOutcomes,
  inFlightLimit,
  inclusionTimeoutMs,
  onNonceConflict,
  onUnfunded,
}: {
  rpc: RpcTransport
  journal: Journal
  heads: HeadCache
  attemptSigner: AttemptSigner
  intentOutcomes: IntentOutcomes
  inFlightLimit: InFlightLimit
  inclusionTimeoutMs: number
  /** Called when the chain and the journal disagree about a nonce. */
  onNonceConflict: () => void
  /** Called when the account cannot pay the given cost in wei. */
  onUnfunded: (cost: bigint) => void
}) {
  /** How many errors of an unknown kind each attempt got. */
  const unclassifiedErrors = new Map<Hex, number>()
  /** The attempts with an open request to a node. */
  const beingSent = new Set<Hex>()

  /** The number of sends that wait for their block. */
  let waitsForBlock = 0
  const inclusionWatch = createInclusionWatch({
    rpc,
    journal,
    intentOutcomes,
    expectsBlock: () => waitsForBlock > 0,
  })
  const submitFirst = createBatcher(submitWaiting, Number.POSITIVE_INFINITY)

  const { raiseFee, cancel } = createAttemptReplacer({ journal, heads, attemptSigner, send })

  async function submitAttempt(attempt: Attempt, options: SubmitOptions): Promise<Submission> {
    beingSent.add(attempt.hash)
    try {
      return await submit(rpc, attempt, options)
    } finally {
      beingSent.delete(attempt.hash)
    }
  }

  /** Sends an attempt and waits for its receipt, if the node supports that; for its acceptance while enough others wait. */
  async function submitAlone(attempt: Attempt, deadline: number): Promise<Submission> {
    const waitMs = Math.max(1, deadline - Date.now())
    if (waitsForBlock >= MAX_WAITS_FOR_BLOCK) return submitAttempt(attempt, { waitMs, sync: false })
    waitsForBlock++
    try {
      return await submitAttempt(attempt, { waitMs, sync: true })
    } finally {
      waitsForBlock--
    }
  }

  /**
   * Sends attempts for the first time. Several at once go in one batch, and their receipts are read from their block. One of
   * them waits for its own receipt, unless another send does: that signals the new block.
   */
  async function submitWaiting(waiting: WaitingAttempt[]): Promise<void> {
    const others = waitsForBlock > 0 ? waiting : waiting.slice(0, -1)
    const size = sendBatchSize(rpc)
    const batch = others.length >= MIN_BATCHED && size > 1 ? others.slice(0, size) : []
    for (const { attempt, deadline, submission } of waiting.filter(one => !batch.includes(one)))
      submission.resolve(submitAlone(attempt, deadline))
    if (batch.length === 0) return
    for (const { attempt } of batch) beingSent.add(attempt.hash)
    const submissions = await submitBatch(
      rpc,
      batch.map(({ attempt }) => attempt),
    )
    for (const [index, { attempt, submission }] of batch.entries()) {
      beingSent.delete(attempt.hash)
      submission.resolve(submissions[index] ?? { kind: 'unknown' })
    }
  }

  function submitWithOthers(attempt: Attempt, deadline: number): Promise<Submission> {
    const submission = Promise.withResolvers<Submission>()
    submitFirst({ attempt, deadline, submission })
    return submission.promise
  }

  /** Sends an attempt and waits until it is included or the inclusion timeout ends. Reconciliation takes over then. */
  async function send(attempt: Attempt): Promise<void> {
    const deadline = Date.now() + inclusionTimeoutMs
    let isPending = true
    let isAccepted = false
    for (let sends = 1; sends <= MAX_SENDS && isPending; sends++) {
      const submission = await (sends === 1 ? submitWithOthers : submitAlone)(attempt, deadline)
      const isConcluded = await conclude(attempt, submission)
      isAccepted ||= submission.kind === 'accepted'
      if (!isConcluded) await scheduler.wait(Math.min(RETRY_DELAY_MS * sends, Math.max(0, deadline - Date.now())))
      isPending = journal.attempts.isPending(attempt.hash)
      if (isConcluded) break
    }
    if (isPending) isPending = await inclusionWatch.isPendingUntil(attempt, deadline)
    if (isPending && isAccepted) markSent(attempt)
    if (isPending || Date.now() - attempt.sentAt > SLOW_INCLUSION_MS) inFlightLimit.recordTrouble()
    else inFlightLimit.recordSuccess()
  }

  /**
   * Resends an attempt without waiting for its inclusion, to another node each time. Returns whether the next nonce may
   * follow: the node responded and does not lack an earlier nonce.
   */
  async function resend(attempt: Attempt, turn = 0): Promise<boolean> {
    const submission = await submitAttempt(attempt, { waitMs: inclusionTimeoutMs, sync: false, turn })
    await conclude(attempt, submission)
    if (submission.kind === 'accepted') markSent(attempt)
    return submission.kind !== 'unknown' && submission.kind !== 'nonce-too-high'
  }

  /** Acts on a node's reply. Returns whether sending the same bytes again now is useless. */
  async function conclude(attempt: Attempt, submission: Submission): Promise<boolean> {
    switch (submission.kind) {
      case 'mined':
        inclusionWatch.observeBlock(Number(submission.receipt.blockNumber))
        await intentOutcomes.include([{ attempt, receipt: submission.receipt }])
        return true
      case 'accepted':
        return true
      case 'unknown':
        return false
      case 'unclassified':
        return cancelAfterErrors(attempt, submission.message)
      // Replacements are sent in the background, so that the caller does not wait for their inclusion.
      case 'malformed':
        cancel(attempt, submission.message).catch(logUnexpected)
        return true
      case 'fee-too-low':
        raiseFee(attempt).catch(logUnexpected)
        return true
      case 'unfunded':
        onUnfunded(BigInt(attempt.gas) * attempt.maxFee)
        return true
      // A used nonce means that our transaction was mined or that someone else used the key. An underpriced replacement
      // competes with other bytes at its nonce.
      case 'nonce-too-low':
      case 'underpriced':
        inFlightLimit.recordTrouble()
        onNonceConflict()
        return true
      // An earlier nonce is missing.
      case 'nonce-too-high':
        inFlightLimit.recordTrouble()
        onNonceConflict()
        return false
    }
  }

  /** Counts an error of an unknown kind and cancels the attempt after several. Returns whether it did. */
  function cancelAfterErrors(attempt: Attempt, reason: string): boolean {
    for (const hash of unclassifiedErrors.keys()) if (!journal.attempts.isPending(hash)) unclassifiedErrors.delete(hash)
    const count = (unclassifiedErrors.get(attempt.hash) ?? 0) + 1
    if (count < MAX_UNCLASSIFIED_ERRORS || attempt.purpose === 'cancel') {
      unclassifiedErrors.set(attempt.hash, count)
      return false
    }
    unclassifiedErrors.delete(attempt.hash)
    cancel(attempt, reason).catch(logUnexpected)
    return true
  }

  function markSent({ digest }: Attempt) {
    if (digest !== null) journal.intents.markSent(digest)
  }

  /** Whether a node has the attempt, or may have it. */
  const isBeingSent = (hash: Hex) => beingSent.has(hash) || inclusionWatch.isWatched(hash)

  return {
    send,
    resend,
    raiseFee,
    cancel,
    isBeingSent,
    /** Whether a node may still respond to a send: a parallel request would only add load. */
    expectsResponse: ({ hash, sentAt }: Attempt) => isBeingSent(hash) && Date.now() - sentAt < RESPONSE_TIMEOUT_MS,
  }
}
