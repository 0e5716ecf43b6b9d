import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { getAddress, type Hex } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { type RevertContext, refusalOfRevert } from '../chain/contract-error-refusals.ts'
import { readTree } from '../chain/read-tree.ts'
import { nowAt } from '../clock.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { type IntentStatus, signedKinds } from '../resources/intent-status.ts'
import type { IntentRecord } from './intent-record.ts'
import type { GasTerms } from './object.ts'
import { DROPPED, type RelayRequest, type UnsentOutcome } from './relay-types.ts'
import { agentOfGroup, groupOf } from './requester.ts'

/** Presents a journalled intent; undefined for transactions that the service sent on its own. */
export function presentIntentRecord(record: IntentRecord): IntentStatus | undefined {
  const kind = signedKinds.find(kind => kind === record.kind)
  if (kind === undefined) return undefined
  const included = includedAttempt(record)
  return {
    digest: record.digest,
    kind,
    state: record.state === 'rejected' && record.reason === DROPPED ? 'dropped' : record.state,
    ...presentParty(record),
    ...(record.note !== undefined && { note: record.note }),
    nonce: record.groupNonce.split('.')[0] ?? '',
    deadline: `${record.deadline}`,
    ...(included && { transactionHash: included.hash }),
    ...(included && record.blockNumber !== undefined && { blockNumber: `${record.blockNumber}` }),
    attempts: record.attempts.map(({ hash, sentAt, ...facts }) => ({
      ...facts,
      transactionHash: hash,
      sentAt: `${sentAt}`,
    })),
    ...presentRefusal(record),
    createdAt: `${record.createdAt}`,
    updatedAt: `${record.updatedAt}`,
  }
}

/** Returns the attempt that decided the intent: the call's own transaction, mined or reverted. */
export const includedAttempt = ({ state, attempts }: IntentRecord) =>
  ['mined', 'final', 'reverted'].includes(state)
    ? attempts.findLast(
        attempt => attempt.purpose === 'call' && attempt.state === (state === 'reverted' ? state : 'mined'),
      )
    : undefined

function presentParty({ group, signer }: IntentRecord) {
  const agentId = agentOfGroup(group)
  return { ...(agentId !== undefined && { agentId: `${agentId}` }), ...(signer !== undefined && { signer }) }
}

function presentRefusal(record: IntentRecord) {
  const { state, revertData: data, reason: message } = record
  if (state !== 'rejected' && state !== 'reverted') return {}
  const facts = { ...(data !== undefined && { data }), ...(message !== undefined && { message }) }
  const hash = includedAttempt(record)?.hash
  const context = revertContext(record)
  const { code, error, remedy } = (
    state === 'reverted' && hash !== undefined
      ? refusalOfFailedIntent({ state, hash, ...facts }, context)
      : refusalOfFailedIntent({ state: 'rejected', ...facts }, context)
  ).body
  return { refusal: { code, error, remedy } }
}

/** The revert data of a call that had no effect, and what is known about the call. */
export type Revert = { data: Hex | undefined; context: RevertContext }

/** Returns what an intent knows about itself and contract errors leave out. */
export function revertContext(intent: RelayRequest | IntentRecord): RevertContext {
  const { digest, deadline } = intent
  const group = 'by' in intent ? groupOf(intent) : intent.group
  const agentId = agentOfGroup(group)
  const [, signer] = /^signer:(.*)$/.exec(group) ?? []
  return {
    digest,
    deadline,
    ...(agentId !== undefined && { agentId }),
    ...(signer !== undefined && { signer: getAddress(signer) }),
  }
}

/** Returns the refusal of a contract error. Reads the chain's time if the error is about a deadline. */
export async function refusalAtHead(chain: Chain, { data, context }: Revert): Promise<Refusal> {
  if (decodeRevert(data)?.name !== 'ExpiredDeadline') return refusalOfRevert(data, context)
  const { block } = await readTree(chain, {})
  return refusalOfRevert(data, { ...context, now: nowAt(block) })
}

/** Returns the refusal of an intent that had no effect: the decoded contract error if the revert data name one. */
export function refusalOfFailedIntent(
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
  if (outcome.message === DROPPED) return refuse('TRANSACTION_DROPPED', { digest: context.digest })
  return data === undefined && outcome.message !== undefined
    ? refuse('INTENT_REFUSED', { problem: outcome.message })
    : refusalOfRevert(data, context)
}

/** Returns the refusal of a request that a lane did not accept. */
export function refusalOfUnsent(outcome: UnsentOutcome, digest: Hex): Refusal {
  switch (outcome.state) {
    case 'busy': {
      const code = outcome.why === 'reverts' ? 'TOO_MANY_REVERTS' : 'EXECUTOR_BUSY'
      return refuse(code, { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    }
    case 'exhausted': {
      const { retryAfterSeconds, ...shortage } = outcome.shortage
      return refuse('GAS_BUDGET_EXHAUSTED', { digest, ...shortage }, { retryAfterSeconds })
    }
    case 'costly': {
      const { gasPriceWei, maxGasPriceWei } = outcome
      return refuse('GAS_PRICE_TOO_HIGH', {
        digest,
        gasPriceWei: `${gasPriceWei}`,
        maxGasPriceWei: `${maxGasPriceWei}`,
      })
    }
    case 'unpriced':
      return refuse('PRICE_REPORTS_UNAVAILABLE', { problem: outcome.problem, digest })
    case 'paused':
      return refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      return refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/**
 * Returns the outcome that a request meets at the moment by what its lane says about gas; undefined if the lane accepts
 * it.
 */
export function outcomeOfGas({ budgets: { shortage }, cost }: GasTerms): UnsentOutcome | undefined {
  const { gasPriceWei = 0n, maxGasPriceWei } = cost ?? {}
  if (maxGasPriceWei !== undefined && gasPriceWei > maxGasPriceWei)
    return { state: 'costly', gasPriceWei, maxGasPriceWei }
  return shortage && { state: 'exhausted', shortage }
}
