import type { Address } from 'viem'
import { withDeadline } from '../timeout.ts'
import type { Lane } from './assemble-lane.ts'
import { ignoreUnreachable } from './background-errors.ts'
import type { Journal } from './store.ts'

const MAX_HEAD_AGE_MS = 2_000

/** What readiness reports about a lane. */
export type LaneStatus = {
  address: Address
  /** The number of pending transactions. */
  pending: number
  oldestPendingSeconds: number
  /** How many transactions the lane currently allows in flight. */
  depth: number
  /** Absent until a node has responded. */
  balanceWei?: bigint
  /** The nonce of the next transaction. Absent while no node responds or the lane waits for an older transaction. */
  nextNonce?: number
  /** Why the lane accepts no intents; absent while it does. */
  pausedFor?: 'funds' | 'shared key' | 'another chain'
}

/** Returns the status of a lane, with figures from the chain if a node responds within `waitMs`. */
export async function laneStatusOf(lane: Lane, journal: Journal, waitMs: number): Promise<LaneStatus> {
  const { account, attemptSigner, inFlightLimit, heads, pauses } = lane
  const reading = heads.within(MAX_HEAD_AGE_MS).catch(ignoreUnreachable)
  const head = await withDeadline(reading, Date.now() + waitMs, () => undefined)
  if (head) pauses.resumeIfFunded(head)
  const { count, oldest } = journal.attempts.pendingTotals()
  const balance = heads.last()?.balance
  const nextNonce = attemptSigner.nextNonce()
  const canAllocate = head !== undefined && !pauses.isBlocked() && nextNonce >= head.nonce
  return {
    address: account.address,
    pending: count,
    oldestPendingSeconds: oldest === undefined ? 0 : Math.floor((Date.now() - oldest) / 1000),
    depth: inFlightLimit.depth(),
    ...(balance !== undefined && { balanceWei: balance }),
    ...(canAllocate && { nextNonce }),
    ...(pauses.lacksFunds() && { pausedFor: 'funds' as const }),
    ...(pauses.secondsOfForeignUse() > 0 && { pausedFor: 'shared key' as const }),
    ...(heads.areOfAnotherChain() && { pausedFor: 'another chain' as const }),
  }
}
