import { type Address, getAddress, type Hex } from 'viem'
import type { Attempt } from './attempt-table.ts'
import type { AttemptRecord, IntentRecord } from './intent-record.ts'
import type { JournalIntent } from './intent-table.ts'
import { type Intake, isRetryable, type OpenRequest } from './relay-intake.ts'
import type { AttemptSender } from './send-until-included.ts'
import type { Journal } from './store.ts'

/** A transaction that a lane signed. */
export type SentTransaction = {
  hash: Hex
  from: Address
  to: Address
  /** Whether it can still be mined. */
  isPending: boolean
  /** The transaction that replaced it. */
  replacedBy?: Hex
}

/** The parts of a lane that know more about an intent than the journal; undefined until the lane has started. */
type LiveParts = { intake: Pick<Intake, 'find'>; sender: Pick<AttemptSender, 'isBeingSent'> } | undefined

/** Returns what a lane knows about an intent; undefined if it does not know it. */
export function findIntentRecord(journal: Journal, lane: LiveParts, digest: Hex): IntentRecord | undefined {
  return toRecord(lane, digest, journal.intents.find(digest), () => journal.attempts.ofIntent(digest))
}

/** Returns what a lane knows about several intents, with two statements. */
export function findIntentRecords(journal: Journal, lane: LiveParts, digests: readonly Hex[]): IntentRecord[] {
  const intents = journal.intents.findAll(digests)
  const attempts = Map.groupBy(journal.attempts.ofIntents(digests), ({ digest }) => digest)
  return digests.flatMap(digest => toRecord(lane, digest, intents.get(digest), () => attempts.get(digest) ?? []) ?? [])
}

/** An intent that is being checked is `received`, even if it was rejected before. */
function toRecord(
  lane: LiveParts,
  digest: Hex,
  intent: JournalIntent | undefined,
  attemptsOf: () => readonly Attempt[],
): IntentRecord | undefined {
  const open = lane?.intake.find(digest)
  if (open && (intent === undefined || isRetryable(intent))) return toReceivedRecord(open, intent)
  if (intent === undefined) return undefined
  const attempts = attemptsOf()
  const isSent = intent.state === 'prepared' && attempts.some(({ hash }) => lane?.sender.isBeingSent(hash))
  return toIntentRecord(isSent ? { ...intent, state: 'sent' } : intent, attempts)
}

const toReceivedRecord = ({ request, receivedAt }: OpenRequest, known: JournalIntent | undefined): IntentRecord => ({
  digest: request.digest,
  kind: request.kind,
  group: request.group,
  groupNonce: request.groupNonce,
  deadline: request.deadline,
  call: request.call,
  state: 'received',
  attempts: [],
  createdAt: toSeconds(known?.createdAt ?? receivedAt),
  updatedAt: toSeconds(receivedAt),
})

const toIntentRecord = (intent: JournalIntent, attempts: readonly Attempt[]): IntentRecord => ({
  digest: intent.digest,
  kind: intent.kind,
  group: intent.group,
  groupNonce: intent.groupNonce,
  deadline: BigInt(intent.deadline),
  call: intent.call,
  state: intent.state,
  attempts: attempts.map(toAttemptRecord),
  ...(intent.revertData !== null && { revertData: intent.revertData }),
  ...(intent.reason !== null && { reason: intent.reason }),
  ...(intent.blockNumber !== null && { blockNumber: BigInt(intent.blockNumber) }),
  createdAt: toSeconds(intent.createdAt),
  updatedAt: toSeconds(intent.updatedAt),
})

const toAttemptRecord = ({ hash, nonce, purpose, state, sentAt }: Attempt): AttemptRecord => ({
  hash,
  nonce,
  purpose,
  state,
  sentAt: toSeconds(sentAt),
})

/** Returns a transaction that the lane of `from` signed; undefined if the journal does not contain it. */
export function findSentTransaction(journal: Journal, hash: Hex, from: Address): SentTransaction | undefined {
  const attempt = journal.attempts.find(hash)
  if (attempt === undefined) return undefined
  const call = attempt.digest === null ? undefined : journal.intents.find(attempt.digest)?.call
  const to = attempt.purpose === 'cancel' ? from : call?.to
  if (to === undefined) return undefined
  const replacedBy = journal.attempts.replacementOf(attempt)?.hash
  return {
    hash,
    from,
    to: getAddress(to),
    isPending: attempt.state === 'pending',
    ...(replacedBy !== undefined && { replacedBy }),
  }
}

const toSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)
