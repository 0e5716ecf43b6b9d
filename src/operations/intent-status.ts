import { getAddress } from 'viem'
import { z } from 'zod'
import { readReceiptLogs } from '../chain/transactions.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import type { IntentRecord } from '../executor/intent.ts'
import { agentIdIn, positionIdIn } from '../protocol/receipt-events.ts'
import { digest, intentLife, signedKinds } from '../resources/intent-status.ts'
import { defineOperation } from './define-operation.ts'
import { refusalOf } from './relay-intent.ts'

export const getIntent = defineOperation(
  {
    id: 'getIntent',
    tool: 'svc_get_intent',
    method: 'get',
    path: '/intents/{digest}',
    tag: 'Transactions',
    summary: 'What became of a signed intent',
    description:
      "The life of an intent by the EIP-712 digest of what was signed, which can be computed before it is posted: its state, every transaction that was signed for it, what it brought about, or why it was refused. 404 means that it was never taken, or that it was forgotten, a day after its deadline. What is refused before it reaches the executor (input, signature, deadline, nonce) leaves no trace. Times are those of the service's clock, the deadline is of the chain's.",
    params: z.object({ digest }),
    status: 200,
    output: intentLife,
    errors: [400, 404, 500, 502, 503],
  },
  async (context, { digest }) => {
    const { config, journals } = context
    if (config.executorKeys.length === 0 && config.relayerKey === undefined) throw refuse('EXECUTOR_NOT_CONFIGURED')
    const record = await journals.findIntent(digest).catch(error => {
      throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause: error })
    })
    const life = record && lifeOf(record)
    if (record === undefined || life === undefined) throw refuse('INTENT_NOT_FOUND', { digest })
    const included = includedIn(record)
    return { ...life, ...(included && record.state !== 'reverted' && (await resultOf(context, included.hash))) }
  },
)

/** What a lane knows of a signed intent; undefined for what the service has sent of its own accord. */
export function lifeOf(record: IntentRecord): z.input<typeof intentLife> | undefined {
  const kind = signedKinds.find(kind => kind === record.kind)
  if (kind === undefined) return undefined
  const { digest, state, groupNonce, deadline, attempts, blockNumber, createdAt, updatedAt } = record
  const included = includedIn(record)
  return {
    digest,
    kind,
    state,
    ...partyOf(record),
    nonce: groupNonce,
    deadline: `${deadline}`,
    ...(included && { transactionHash: included.hash }),
    ...(included && blockNumber !== undefined && { blockNumber: `${blockNumber}` }),
    attempts: attempts.map(({ hash, sentAt, ...facts }) => ({
      ...facts,
      transactionHash: hash,
      sentAt: `${sentAt}`,
    })),
    ...refusalIn(record),
    createdAt: `${createdAt}`,
    updatedAt: `${updatedAt}`,
  }
}

/** The attempt that decided: the call's own transaction, mined or reverted. */
const includedIn = ({ state, attempts }: IntentRecord) =>
  ['mined', 'final', 'reverted'].includes(state)
    ? attempts.findLast(({ purpose, state }) => purpose === 'call' && (state === 'mined' || state === 'reverted'))
    : undefined

function partyOf({ group }: IntentRecord) {
  const [of, id = ''] = group.split(':')
  return of === 'agent' ? { agentId: id } : { signer: getAddress(id) }
}

/** The ids of the receipt's events; nothing where the node does not tell them now. */
async function resultOf({ chain, config: { trading } }: Context, hash: `0x${string}`) {
  const logs = await readReceiptLogs(chain, hash)
  const agentId = logs && agentIdIn(chain.contracts.AgentRegistry, logs)
  const positionId = logs && trading && positionIdIn(trading.TradeRouter, logs)
  return {
    ...(agentId !== undefined && { agentId: `${agentId}` }),
    ...(positionId !== undefined && { positionId: `${positionId}` }),
  }
}

function refusalIn(record: IntentRecord) {
  const { state, revertData: data, reason: message } = record
  if (state !== 'rejected' && state !== 'reverted') return {}
  const facts = { ...(data !== undefined && { data }), ...(message !== undefined && { message }) }
  const hash = includedIn(record)?.hash
  const { code, error, remedy } = (
    state === 'reverted' && hash !== undefined
      ? refusalOf({ state, hash, ...facts })
      : refusalOf({ state: 'rejected', ...facts })
  ).body
  return { refusal: { code, error, ...(remedy !== undefined && { remedy }) } }
}
