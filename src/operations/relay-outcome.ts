import type { Hex } from 'viem'
import { refuse } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/intent.ts'
import { decodeRevert, type RevertContext, refusalOfRevert } from '../protocol/contract-errors.ts'

/** The revert data of a call that had no effect, and what is known about the call. */
export type Revert = { data: Hex | undefined; context: RevertContext }

/**
 * Relays a call and returns the mined transaction. Every other outcome is thrown as its refusal; `onRevert` may replace
 * the refusal of a decoded contract error.
 */
export async function relayUntilMined(
  executor: Executor,
  relay: RelayRequest,
  onRevert: (revert: Revert) => Promise<Refusal> = async ({ data, context }) => refusalOfRevert(data, context),
): Promise<Extract<RelayOutcome, { state: 'mined' }>> {
  const { digest, groupNonce: nonce, group } = relay
  const outcome = await executor.relay(relay)
  switch (outcome.state) {
    case 'mined':
      return outcome
    case 'rejected':
    case 'reverted': {
      const context = outcome.state === 'reverted' ? { transactionHash: outcome.hash } : {}
      throw decodeRevert(outcome.data) === undefined
        ? refusalOf(outcome)
        : await onRevert({ data: outcome.data, context })
    }
    case 'conflict':
      throw refuse('NONCE_IN_FLIGHT', { agentId: group.replace(/^\w+:/, ''), nonce, digest: outcome.digest })
    case 'unknown':
      throw refuse('SUBMISSION_UNKNOWN', { digest, transactionHash: outcome.hash })
    case 'unsent':
      throw refuse('SUBMISSION_FAILED', { digest })
    case 'busy':
      throw refuse(
        outcome.why === 'reverts' ? 'TOO_MANY_REVERTS' : 'EXECUTOR_BUSY',
        { digest },
        { retryAfterSeconds: outcome.retryAfterSeconds },
      )
    case 'paused':
      throw refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      throw refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/** Returns the refusal of an intent that had no effect: the decoded contract error if the revert data name one. */
export function refusalOf(
  outcome: { state: 'rejected'; data?: Hex; message?: string } | { state: 'reverted'; hash: Hex; data?: Hex },
): Refusal {
  const { state, data } = outcome
  if (state === 'reverted')
    return decodeRevert(data) === undefined
      ? refuse('SUBMISSION_REVERTED', {
          transactionHash: outcome.hash,
          problem: 'the reason could not be replayed',
        })
      : refusalOfRevert(data, { transactionHash: outcome.hash })
  return data === undefined && outcome.message !== undefined
    ? refuse('INTENT_REFUSED', { problem: outcome.message })
    : refusalOfRevert(data)
}

/** Tells whether the executor has accepted this digest before, so that it may know the outcome. */
export async function wasAccepted(executor: Executor, { group, digest }: RelayRequest): Promise<boolean> {
  const record = await executor.find(group, digest)
  return record !== undefined && record.state !== 'rejected'
}
