import { type Address, getAddress, type Hex } from 'viem'
import type { Attempt } from './attempt-table.ts'
import type { AttemptRecord, IntentRecord, RelayRequest, SentTransaction } from './intent.ts'
import type { JournalIntent } from './intent-table.ts'
import type { Journal } from './store.ts'

/** Returns a journalled intent as the lane reports it. */
export const toIntentRecord = (intent: JournalIntent, attempts: readonly Attempt[]): IntentRecord => ({
  digest: intent.digest,
  kind: intent.kind,
  group: intent.group,
  groupNonce: intent.groupNonce,
  deadline: BigInt(intent.deadline),
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

/** Returns the record of a request that is not signed yet. `receivedAt` is in milliseconds; `known` is an earlier try. */
export const toReceivedRecord = (
  { digest, kind, group, groupNonce, deadline }: RelayRequest,
  receivedAt: number,
  known?: JournalIntent,
): IntentRecord => ({
  digest,
  kind,
  group,
  groupNonce,
  deadline,
  state: 'received',
  attempts: [],
  createdAt: toSeconds(known?.createdAt ?? receivedAt),
  updatedAt: toSeconds(receivedAt),
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
