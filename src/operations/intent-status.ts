import { agentIdIn, positionIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import { getAddress } from 'viem'
import { z } from 'zod'
import { readReceiptLogs } from '../chain/find-transaction.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import { digest, intentStatus, signedKinds } from '../resources/intent-status.ts'
import { defineOperation } from './define-operation.ts'
import { refusalOfFailedIntent, revertContext } from './failed-intent-refusals.ts'

export const getIntent = defineOperation(
  {
    id: 'getIntent',
    tool: {
      name: 'svc_get_intent',
      description:
        'Returns what became of a signed intent, by its digest: executed, in flight, or rejected and why. Use it after an unclear answer. Example: {"digest":"0x…"}',
    },
    method: 'get',
    path: '/intents/{digest}',
    tag: 'Transactions',
    summary: 'Get the status of an intent',
    description:
      "Returns the status of a signed intent by its EIP-712 digest: its state, every transaction signed for it, and its result or the reason why it failed. The digest can be computed before posting. Responds 404 if the executor never accepted the intent, or forgot it: a rejected intent after an hour, any other a day after its deadline. A request that is rejected before it reaches the executor (input, signature, deadline, nonce) leaves no trace. Times are of the service's clock; the deadline is in block time.",
    params: z.object({ digest }),
    cache: 'none',
    status: 200,
    output: intentStatus,
    errors: [404, 502, 503],
  },
  async (context, { digest }) => {
    const { config, journals } = context
    if (config.executorKeys.length === 0 && config.relayerKey === undefined) throw refuse('EXECUTOR_NOT_CONFIGURED')
    const record = await journals.findIntent(digest).catch(error => {
      throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause: error })
    })
    const status = record && presentIntentRecord(record)
    if (record === undefined || status === undefined) throw refuse('INTENT_NOT_FOUND', { digest })
    const included = includedAttempt(record)
    return { ...status, ...(included && record.state !== 'reverted' && (await readResult(context, included.hash))) }
  },
)

/** Presents a journalled intent; undefined for transactions that the service sent on its own. */
export function presentIntentRecord(record: IntentRecord): z.input<typeof intentStatus> | undefined {
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
const includedAttempt = ({ state, attempts }: IntentRecord) =>
  ['mined', 'final', 'reverted'].includes(state)
    ? attempts.findLast(
        attempt => attempt.purpose === 'call' && attempt.state === (state === 'reverted' ? state : 'mined'),
      )
    : undefined

function presentParty({ group }: IntentRecord) {
  const [party, id = ''] = group.split(':')
  return party === 'agent' ? { agentId: id } : { signer: getAddress(id) }
}

/** Reads the resulting ids from the transaction's events; none if the node does not return them now. */
async function readResult({ chain, config: { trading } }: Context, hash: `0x${string}`) {
  const logs = await readReceiptLogs(chain, hash)
  const agentId = logs && agentIdIn(chain.contracts.AgentRegistry, logs)
  const positionId = logs && trading && positionIdIn(trading.TradeRouter, logs)
  return {
    ...(agentId !== undefined && { agentId: `${agentId}` }),
    ...(positionId !== undefined && { positionId: `${positionId}` }),
  }
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
