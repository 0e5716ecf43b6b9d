import { getAddress } from 'viem'
import { type IntentStatus, signedKinds } from '../resources/intent-status.ts'
import { refusalOfFailedIntent, revertContext } from './failed-intent-refusals.ts'
import type { IntentRecord } from './intent-record.ts'

/** Presents a journalled intent; undefined for transactions that the service sent on its own. */
export function presentIntentRecord(record: IntentRecord): IntentStatus | undefined {
  const kind = signedKinds.find(kind => kind === record.kind)
  if (kind === undefined) return undefined
  const included = includedAttempt(record)
  return {
    digest: record.digest,
    kind,
    state: record.state,
    ...presentParty(record),
    nonce: record.groupNonce,
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

function presentParty({ group }: IntentRecord) {
  const [party, id = ''] = group.split(':')
  return party === 'agent' ? { agentId: id } : { signer: getAddress(id) }
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
