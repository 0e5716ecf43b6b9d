import { getAddress, type Hex } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { readTree } from '../chain/read-tree.ts'
import { refuse } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { Executor } from '../executor/client.ts'
import type { IntentRecord, RelayOutcome, RelayRequest } from '../executor/intent.ts'
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
      const context = revertContext(relay)
      if (decodeRevert(outcome.data) === undefined) throw refusalOf(outcome, context)
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
    case 'paused':
      throw refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      throw refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/** Returns what an intent knows about itself and contract errors leave out. */
export function revertContext({ digest, deadline, group }: RelayRequest | IntentRecord): RevertContext {
  const [party, id = ''] = group.split(':')
  return {
    digest,
    deadline,
    ...(party === 'agent' && { agentId: BigInt(id) }),
    ...(party === 'signer' && { signer: getAddress(id) }),
  }
}

/** Returns the refusal of a contract error. Reads the chain's time if the error is about a deadline. */
export async function refusalAtHead(chain: Chain, { data, context }: Revert): Promise<Refusal> {
  if (decodeRevert(data)?.name !== 'ExpiredDeadline') return refusalOfRevert(data, context)
  const { block } = await readTree(chain, {})
  return refusalOfRevert(data, { ...context, chainTime: block.timestamp })
}

/** Returns the refusal of an intent that had no effect: the decoded contract error if the revert data name one. */
export function refusalOf(
  outcome: { state: 'rejected'; data?: Hex; message?: string } | { state: 'reverted'; hash: Hex; data?: Hex },
  context: RevertContext,
): Refusal {
  const { state, data } = outcome
  if (state === 'reverted')
    return decodeRevert(data) === undefined
      ? refuse('SUBMISSION_REVERTED', {
          transactionHash: outcome.hash,
          problem: 'the reason could not be replayed',
        })
      : refusalOfRevert(data, { ...context, transactionHash: outcome.hash })
  return data === undefined && outcome.message !== undefined
    ? refuse('INTENT_REFUSED', { problem: outcome.message })
    : refusalOfRevert(data, context)
}

/** Tells whether the executor has accepted this digest before, so that it may know the outcome. */
export async function wasAccepted(executor: Executor, { group, digest }: RelayRequest): Promise<boolean> {
  const record = await executor.find(group, digest)
  return record !== undefined && record.state !== 'rejected'
}
