import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { type Revert, refusalOfFailedIntent, refusalOfUnsent, revertContext } from '../executor/present-intent.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import { groupOf } from '../executor/requester.ts'

/**
 * Returns the mined transaction of a relay's outcome; throws the refusal of every other one. `refusalOf` returns that
 * of a contract error, which it may be unable to decode.
 */
export async function minedOrRefusal(
  request: RelayRequest,
  outcome: RelayOutcome,
  refusalOf: (revert: Revert) => Promise<Refusal> = async ({ data, context }) => refusalOfRevert(data, context),
): Promise<Extract<RelayOutcome, { state: 'mined' }>> {
  const { digest, groupNonce: nonce } = request
  switch (outcome.state) {
    case 'mined':
      return outcome
    case 'rejected':
    case 'reverted': {
      const context = revertContext(request)
      const isReasonKnown = decodeRevert(outcome.data) !== undefined
      if (!isReasonKnown && (outcome.state === 'reverted' || outcome.data === undefined))
        throw refusalOfFailedIntent(outcome, context)
      const transactionHash = outcome.state === 'reverted' ? outcome.hash : undefined
      throw await refusalOf({ data: outcome.data, context: { ...context, transactionHash } })
    }
    case 'conflict':
      throw refuse('NONCE_IN_FLIGHT', { agentId: groupOf(request).replace(/^\w+:/, ''), nonce, digest: outcome.digest })
    case 'unknown':
      throw refuse('SUBMISSION_UNKNOWN', { digest, transactionHash: outcome.hash })
    case 'unsent':
      throw refuse('SUBMISSION_FAILED', { digest })
    default:
      throw refusalOfUnsent(outcome, digest)
  }
}
