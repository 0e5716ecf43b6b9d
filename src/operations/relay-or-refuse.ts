import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { beginRelay, type Call } from '../call.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { Executor } from '../executor/client.ts'
import { type Revert, refusalOfFailedIntent, revertContext } from '../executor/failed-intent-refusals.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'

/** Relays a request for a call, bounded by the time that the call has left, and reports its progress. */
export async function relayInTime(
  { readCache }: Pick<Context, 'readCache'>,
  call: Call,
  executor: Executor,
  request: RelayRequest,
): Promise<RelayOutcome> {
  beginRelay(call, request.digest)
  await call.progress?.start(request.kind)
  const outcome = await executor.relay(request, call.submission?.respondBy)
  // From here on, this isolate must read its own writes.
  readCache.clear()
  await call.progress?.end(outcome)
  return outcome
}

/**
 * Relays a request and returns the mined transaction. Every other outcome is thrown as its refusal; `onRevert` may replace
 * the refusal of a decoded contract error.
 */
export async function relayOrRefuse(
  context: Pick<Context, 'readCache'>,
  call: Call,
  executor: Executor,
  relay: RelayRequest,
  onRevert: (revert: Revert) => Promise<Refusal> = async ({ data, context }) => refusalOfRevert(data, context),
): Promise<Extract<RelayOutcome, { state: 'mined' }>> {
  return minedOrRefusal(relay, await relayInTime(context, call, executor, relay), onRevert)
}

/** Returns the mined transaction of an outcome; throws the refusal of every other one. */
export async function minedOrRefusal(
  relay: RelayRequest,
  outcome: RelayOutcome,
  onRevert: (revert: Revert) => Promise<Refusal>,
): Promise<Extract<RelayOutcome, { state: 'mined' }>> {
  const { digest, groupNonce: nonce, group } = relay
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
