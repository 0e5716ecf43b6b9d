import { reduceAmounts } from '@agent-trading-service/protocol/fill-amounts'
import { reduceChecks } from '@agent-trading-service/protocol/router-checks'
import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getPositionTerms } from '../chain/read-intent-terms.ts'
import type { Context } from '../context.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { relayTradeIntent } from '../intents/trade-intent.ts'
import { estimateSale, presentQuote } from '../intents/trade-quote.ts'
import { exitBpsQuery, positionQuery, reduceIntentBody, withNote } from '../resources/intent-input.ts'
import { reduceIntentQuote } from '../resources/intent-quote.ts'
import { intentReceipt } from '../resources/intent-status.ts'
import { presentPosition } from '../resources/position.ts'
import { deadline } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const CLOSE_BPS = 10_000

export const getReduceIntentQuote = defineOperation(
  {
    id: 'getReduceIntentQuote',
    tool: {
      name: 'svc_get_reduce_intent_quote',
      description:
        'First step of selling part of a position, or all of it (exitBps 10000). Pass exitBps, sign typedData in a wallet (EIP-712), then call svc_submit_reduce_intent. Example: {"agentId":"1","positionId":"3","exitBps":10000}',
    },
    path: '/agents/{agentId}/reduce-intents/quote',
    tag: 'Trading',
    summary: 'Get a quote for reducing or closing a position',
    description:
      'Returns what the next ReducePosition intent must match and every rule the router will apply. With `exitBps`, also returns the typed data to sign, its digest, an estimate and the body to post; without it, the checks are those of a full close.',
    query: z.object({ ...positionQuery, exitBps: exitBpsQuery, deadline: deadline.optional() }),
    output: reduceIntentQuote,
  },
  async (context: Context, { agentId, positionId, exitBps, deadline: requestedDeadline }) => {
    const { trading } = context
    const share = exitBps ?? CLOSE_BPS
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId, exitBps: share })
    const { position, token } = terms
    const deadline = quoteDeadline(requestedDeadline, block, terms.extension)
    const estimate =
      exitBps === undefined ? undefined : estimateSale(token, reduceAmounts(terms, exitBps), position.capitalMode)
    return {
      ...(await presentQuote(context, block, {
        agentId,
        closesPosition: share === CLOSE_BPS,
        terms,
        primaryType: 'ReducePosition',
        checks: reduceChecks(terms, { exitBps: share, deadline }),
        deadline,
        intent:
          exitBps === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, exitBps, deadline, nonce },
                body: { positionId: `${positionId}`, exitBps },
              }),
        missing: ['exitBps'],
      })),
      positionId: `${positionId}`,
      position: presentPosition(position, token.symbol),
      ...(estimate && { estimate }),
    }
  },
)

export const submitReduceIntent = defineOperation(
  {
    id: 'submitReduceIntent',
    tool: {
      name: 'svc_submit_reduce_intent',
      description:
        'Sells exitBps of what remains of a position; 10000 closes it. Before: svc_get_reduce_intent_quote; send its body with agentId and signature. Repeating it is safe: it executes once.',
    },
    method: 'post',
    path: '/agents/{agentId}/reduce-intents',
    tag: 'Trading',
    summary: 'Reduce or close a position',
    description:
      "Verifies a ReducePosition message signed by the agent's signer and relays it. Sells `exitBps` of the remaining tokens without consuming an exit rule; 10000 closes the position.",
    body: withNote(reduceIntentBody),
    requestKind: 'reductions',
    status: 201,
    output: intentReceipt,
  },
  async (context: Context, { signature, note, ...message }, call) => {
    const traded = { positionId: message.positionId }
    return relayTradeIntent(context, call, { ...message, signature, note, kind: 'ReducePosition', traded }, () => ({
      message,
      data: accepted => encodeCall(tradeRouterAbi, 'reducePosition', [message, accepted]),
    }))
  },
)
