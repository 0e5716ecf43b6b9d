import { type Address, getAddress, type Hex } from 'viem'
import type { AttemptPurpose, AttemptState, AttemptSummary } from './attempt-table.ts'
import type { IntentState, IntentSummary } from './intent-table.ts'
import type { Lane, OpenRequest } from './lane.ts'
import { isRetryable } from './relay-intent.ts'
import type { Call, IntentKind, PricesOfCall } from './relay-types.ts'
import { groupOf, signerOf } from './requester.ts'
import { isBeingSent } from './send-attempt.ts'
import type { Journal } from './store.ts'

/** One signed transaction at one account nonce. `sentAt` is in Unix seconds. */
type AttemptRecord = {
  hash: Hex
  nonce: number
  purpose: AttemptPurpose
  state: AttemptState
  sentAt: number
}

/** What a lane knows about an intent. `createdAt` and `updatedAt` are Unix seconds of the service's clock. */
export type IntentRecord = {
  digest: Hex
  kind: IntentKind
  group: string
  groupNonce: string
  /** Unix seconds, compared with block timestamps. */
  deadline: bigint
  /** The account that signed it; absent for the service's own transactions. */
  signer?: Address
  /** What the signer says about a trade. */
  note?: string
  /** The call that carries the signed intent. Notices of new states have none; a rejected intent may have no data. */
  call?: Call
  /** The prices that the call brings along. */
  prices?: PricesOfCall
  state: IntentState
  attempts: AttemptRecord[]
  revertData?: Hex
  /** Why nothing was executed, if there is no revert data. It never contains a URL. */
  reason?: string
  blockNumber?: bigint
  createdAt: number
  updatedAt: number
}

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

/** Returns what a lane knows about an intent; undefined if it does not know it. */
export function findIntentRecord(journal: Journal, lane: Lane | undefined, digest: Hex): IntentRecord | undefined {
  const intent = journal.intents.find(digest)
  const record = toRecord(lane, digest, intent, () => journal.attempts.ofIntent(digest))
  const { call, prices } = findOpen(lane, digest, intent)?.request ?? intent ?? {}
  return record && { ...record, ...(call && { call }), ...(prices && { prices }) }
}

/** Returns what a lane knows about several intents, without their calls and with two statements. */
export function findIntentRecords(journal: Journal, lane: Lane | undefined, digests: readonly Hex[]): IntentRecord[] {
  const intents = journal.intents.findAll(digests)
  const attempts = Map.groupBy(journal.attempts.ofIntents(digests), ({ digest }) => digest)
  return digests.flatMap(digest => toRecord(lane, digest, intents.get(digest), () => attempts.get(digest) ?? []) ?? [])
}

/** Returns the request of an intent that is being checked, even if it was rejected before. */
const findOpen = (lane: Lane | undefined, digest: Hex, intent: IntentSummary | undefined): OpenRequest | undefined =>
  intent === undefined || isRetryable(intent) ? lane?.open.get(digest) : undefined

/** Returns a record without the call. */
function toRecord(
  lane: Lane | undefined,
  digest: Hex,
  intent: IntentSummary | undefined,
  attemptsOf: () => readonly AttemptSummary[],
): IntentRecord | undefined {
  const open = findOpen(lane, digest, intent)
  if (open) return toReceivedRecord(open, intent)
  if (intent === undefined) return undefined
  const attempts = attemptsOf()
  const isSent =
    lane !== undefined && intent.state === 'prepared' && attempts.some(({ hash }) => isBeingSent(lane, hash))
  return toIntentRecord(isSent ? { ...intent, state: 'sent' } : intent, attempts)
}

function toReceivedRecord({ request, receivedAt }: OpenRequest, known: IntentSummary | undefined): IntentRecord {
  const signer = signerOf(request.by)
  return {
    digest: request.digest,
    kind: request.kind,
    group: groupOf(request),
    groupNonce: request.groupNonce,
    deadline: request.deadline,
    ...(signer !== undefined && { signer }),
    state: 'received',
    attempts: [],
    createdAt: toSeconds(known?.createdAt ?? receivedAt),
    updatedAt: toSeconds(receivedAt),
  }
}

const toIntentRecord = (intent: IntentSummary, attempts: readonly AttemptSummary[]): IntentRecord => ({
  digest: intent.digest,
  kind: intent.kind,
  group: intent.group,
  groupNonce: intent.groupNonce,
  deadline: BigInt(intent.deadline),
  ...(intent.signer !== null && { signer: intent.signer }),
  ...(intent.note !== null && { note: intent.note }),
  state: intent.state,
  attempts: attempts.map(toAttemptRecord),
  ...(intent.revertData !== null && { revertData: intent.revertData }),
  ...(intent.reason !== null && { reason: intent.reason }),
  ...(intent.blockNumber !== null && { blockNumber: BigInt(intent.blockNumber) }),
  createdAt: toSeconds(intent.createdAt),
  updatedAt: toSeconds(intent.updatedAt),
})

const toAttemptRecord = ({ hash, nonce, purpose, state, sentAt }: AttemptSummary): AttemptRecord => ({
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
