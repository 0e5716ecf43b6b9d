import { agentIdIn, positionIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import { type Hex, isAddressEqual } from 'viem'
import { z } from 'zod'
import { chargeBeforeReading } from '../call.ts'
import type { ChainContext } from '../chain/chain-context.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { readReceiptLogs } from '../chain/find-transaction.ts'
import { readKnownAddresses } from '../chain/known-addresses.ts'
import { signedTradeIn } from '../chain/signed-trade.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import { includedAttempt, presentIntentRecord } from '../executor/present-intent.ts'
import { agentOfGroup } from '../executor/requester.ts'
import { readTradeResult } from '../intents/trade-result.ts'
import { presentCall } from '../resources/described-call.ts'
import { digest, intentStatus, presentSignedTrade, presentTradeResult } from '../resources/intent-status.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { defineOperation } from './define-operation.ts'

export const getIntent = defineOperation(
  {
    id: 'getIntent',
    tool: {
      name: 'svc_get_intent',
      description:
        'Returns what became of a signed intent, by its digest: executed, in flight, or rejected and why. Use it after an unclear answer. Example: {"digest":"0x…"}',
    },
    path: '/intents/{digest}',
    tag: 'Transactions',
    summary: 'Get the status of an intent',
    description:
      "Returns the status of a signed intent by its EIP-712 digest: its state, every transaction signed for it, and its result or the reason why it failed. The digest can be computed before posting. Responds 404 if the executor never accepted the intent, or forgot it: a rejected intent after an hour, any other a day after its deadline. A request that is rejected before it reaches the executor (input, signature, deadline, nonce) leaves no trace. Times are of the service's clock; the deadline is in block time.",
    params: z.object({ digest }),
    output: intentStatus,
  },
  async (context: Context, { digest }, call) => {
    const { config, journals } = context
    if (config.executorKeys.length === 0 && config.relayerKey === undefined) throw refuse('EXECUTOR_NOT_CONFIGURED')
    await chargeBeforeReading(call, journals.lanes.ofIntents - 1)
    const found = await journals.findIntent(digest).catch(unreachable(digest))
    const mined = found?.state === 'reverted' ? undefined : found && includedAttempt(found)
    const logs = mined && (await readReceiptLogs(context.chain, mined.hash))
    const record = logs === null ? await journals.confirmIntent(digest).catch(unreachable(digest)) : found
    const status = record && presentIntentRecord(record)
    if (record === undefined || status === undefined) throw refuse('INTENT_NOT_FOUND', { digest })
    const signed = await readSigned(context, record)
    return {
      ...status,
      ...(signed && { signed }),
      ...(await describeRelayed(context.chain, record)),
      ...(mined && logs && (await readResult(context, record, { hash: mined.hash, logs }))),
    }
  },
)

const unreachable = (digest: Hex) => (cause: unknown) => {
  throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause })
}

/** Returns what was signed, with the symbol of its token; undefined if it is no trade. */
async function readSigned({ chain, config }: ChainContext, { call }: IntentRecord) {
  const { trading } = config
  const isTrade = trading !== undefined && call !== undefined && isAddressEqual(call.to, trading.TradeRouter)
  const signed = isTrade ? signedTradeIn(call.data) : undefined
  if (signed === undefined) return undefined
  const { token } = signed
  const symbol =
    token &&
    (await symbolsOf(chain, [token])
      .then(symbolOf => symbolOf(token))
      .catch(() => token))
  return presentSignedTrade(signed, symbol)
}

/** Says what the call that carries a signed message asks for; nothing if the executor kept no calldata. */
async function describeRelayed(chain: Chain, { call }: IntentRecord) {
  if (call === undefined || call.data === '0x') return {}
  return { calls: presentCall(call.to, call.data, await readKnownAddresses(chain)) }
}

/** Returns the ids that a transaction's events name, and what a trade did. */
async function readResult(
  context: Context,
  { blockNumber, call, group }: IntentRecord,
  { hash, logs }: { hash: Hex; logs: NodeLog[] },
) {
  const { chain, config } = context
  const registered = agentIdIn(chain.contracts.AgentRegistry, logs)
  const positionId = config.trading && positionIdIn(config.trading.TradeRouter, logs)
  if (positionId === undefined || blockNumber === undefined || call === undefined)
    return registered === undefined ? {} : { agentId: `${registered}` }
  const agentId = agentOfGroup(group) ?? 0n
  const intent = { agentId, hash, blockNumber, data: call.data, logs, isReplay: true }
  return { positionId: `${positionId}`, ...presentTradeResult(await readTradeResult(context, intent)) }
}
