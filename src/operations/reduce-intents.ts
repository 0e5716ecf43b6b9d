import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/multicall.ts'
import { getPositionTerms } from '../chain/trading-terms.ts'
import { reduceChecks, saleOf } from '../protocol/checks.ts'
import { agentParams } from '../resources/agent.ts'
import { exitBpsQuery, intentReceipt, positionQuery, reduceIntentQuote, signed } from '../resources/intent.ts'
import { presentPosition } from '../resources/position.ts'
import { deadline, positionId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { estimateSale, presentQuote } from './present-quote.ts'
import { relayIntent } from './relay-intent.ts'

const exitBps = z.int().min(1).max(10_000).meta({
  description: 'Share of the remaining tokens to sell in basis points; 10000 closes',
  example: 5000,
})
const CLOSE_BPS = 10_000

export const getReduceIntentQuote = defineOperation(
  {
    id: 'getReduceIntentQuote',
    tool: 'svc_get_reduce_intent_quote',
    method: 'get',
    path: '/agents/{agentId}/reduce-intents/quote',
    tag: 'Trading',
    summary: 'Quote for reducing or closing a position',
    description:
      'What the next ReducePosition intent must match and every rule the router will apply. With `exitBps` it also answers the typed data to sign, its digest, an estimate and the body to post; without it the checks are those of a full close.',
    params: agentParams,
    query: z.object({ ...positionQuery, exitBps: exitBpsQuery, deadline: deadline.optional() }),
    status: 200,
    output: reduceIntentQuote,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config }, { agentId, positionId, exitBps, deadline }) => {
    const share = exitBps ?? CLOSE_BPS
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId, exitBps: share })
    const { position, token } = terms
    const estimate = exitBps === undefined ? undefined : estimateSale(token, saleOf(terms, exitBps))
    return {
      ...presentQuote({ trading, config }, block, {
        agentId,
        terms,
        primaryType: 'ReducePosition',
        checks: reduceChecks(terms, { exitBps: share }),
        deadline,
        intent:
          exitBps === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, exitBps, deadline, nonce },
                body: { positionId: `${positionId}`, exitBps },
              }),
      }),
      positionId: `${positionId}`,
      position: presentPosition(position, token.symbol),
      ...(estimate && { estimate }),
    }
  },
)

export const submitReduceIntent = defineOperation(
  {
    id: 'submitReduceIntent',
    tool: 'svc_submit_reduce_intent',
    method: 'post',
    path: '/agents/{agentId}/reduce-intents',
    tag: 'Trading',
    summary: 'Reduce or fully close a position',
    description:
      "Verifies a ReducePosition message signed by the agent's signer and relays it. It sells exitBps of what remains and consumes no exit rule; 10000 closes.",
    params: agentParams,
    body: z.object({ positionId, exitBps, ...signed }),
    status: 201,
    output: intentReceipt,
    errors: [400, 404, 502, 503],
  },
  async (context, { signature, ...message }) =>
    relayIntent(context, {
      ...message,
      signature,
      kind: 'reduce',
      primaryType: 'ReducePosition',
      message: () => message,
      data: () => encodeCall(tradeRouterAbi, 'reducePosition', [message, signature]),
    }),
)
