import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { Executor } from '../executor/client.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import { type Revert, refusalOfFailedIntent, revertContext } from './failed-intent-refusals.ts'

/**
 * Relays a call and returns the mined transaction. Every other outcome is thrown as its refusal; `onRevert` may replace
 * the refusal of a decoded contract error.
 */
export async function relayOrRefuse(
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
      const context = revertContext(relay)
      if (decodeRevert(outcome.data) === undefined) throw refusalOfFailedIntent(outcome, context)
      const transactionHash = outcome.state === 'reverted' ? outcome.hash : undefined
      throw await onRevert({ data: outcome.data, context: { ...context, transactionHash } })
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
    case 'exhausted': {
      const { retryAfterSeconds, ...shortage } = outcome.shortage
      throw refuse('GAS_BUDGET_EXHAUSTED', { digest, ...shortage }, { retryAfterSeconds })
    }
    case 'paused':
      throw refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      throw refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/** Tells whether the executor has accepted this digest before, so that it may know the outcome. */
export async function wasAccepted(executor: Executor, { group, digest }: RelayRequest): Promise<boolean> {
  const record = await executor.find(group, digest)
  return record !== undefined && record.state !== 'rejected'
}

/**
 * Returns what the executor knows about this very call, signature included, if it has accepted it before. The signature was
 * valid then, whoever may sign by now.
 */
export async function findRepeated(executor: Executor, relay: RelayRequest): Promise<IntentRecord | undefined> {
  const record = await executor.find(relay.group, relay.digest)
  return record?.state !== 'rejected' && record?.call?.data === relay.call.data ? record : undefined
}
