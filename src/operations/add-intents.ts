import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/multicall.ts'
import { getPositionTerms } from '../chain/trading-terms.ts'
import { addChecks, maxUsdcAmount } from '../protocol/checks.ts'
import { agentParams } from '../resources/agent.ts'
import {
  addIntentQuote,
  entry,
  entryQuery,
  intentReceipt,
  parseUsdc,
  positionQuery,
  presentAllocation,
  signed,
} from '../resources/intent.ts'
import { presentPosition } from '../resources/position.ts'
import { positionId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { estimateBuy, presentQuote } from './present-quote.ts'
import { relayIntent } from './relay-intent.ts'

export const getAddIntentQuote = defineOperation(
  {
    id: 'getAddIntentQuote',
    tool: 'svc_get_add_intent_quote',
    method: 'get',
    path: '/agents/{agentId}/add-intents/quote',
    tag: 'Trading',
    summary: 'Quote for adding to a position',
    description:
      'What the next AddToPosition intent must match, every rule the router will apply and the most that passes now. With `usdcAmount` it also answers the typed data to sign, its digest, an estimate and the body to post.',
    params: agentParams,
    query: z.object({ ...positionQuery, ...entryQuery }),
    status: 200,
    output: addIntentQuote,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config }, { agentId, positionId, usdcAmount, minTokenOut, maxSlippageBps, deadline }) => {
    const amount = usdcAmount === undefined ? undefined : parseUsdc(usdcAmount)
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId, usdcAmount: amount })
    const { position, token } = terms
    const intent = { usdcAmount: amount, minTokenOut, maxSlippageBps }
    const checks = addChecks(terms, intent)
    const estimate = amount === undefined ? undefined : estimateBuy(token, amount, maxSlippageBps)
    const { exitRules: _, pendingRules: __, ...withoutLadder } = presentPosition(position, token.symbol)
    return {
      ...presentQuote({ trading, config }, block, {
        agentId,
        terms,
        primaryType: 'AddToPosition',
        checks,
        deadline,
        intent:
          amount === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, usdcAmount: amount, minTokenOut, maxSlippageBps, deadline, nonce },
                body: { positionId: `${positionId}`, usdcAmount, minTokenOut: `${minTokenOut}`, maxSlippageBps },
              }),
      }),
      positionId: `${positionId}`,
      allocation: presentAllocation(terms.allocation),
      maxUsdcAmount: `${maxUsdcAmount(terms, checks, intent)}`,
      assumed: { minTokenOut: `${minTokenOut}`, maxSlippageBps },
      ...(estimate && { estimate }),
      position: withoutLadder,
    }
  },
)

export const submitAddIntent = defineOperation(
  {
    id: 'submitAddIntent',
    tool: 'svc_submit_add_intent',
    method: 'post',
    path: '/agents/{agentId}/add-intents',
    tag: 'Trading',
    summary: 'Add to a position',
    description:
      "Verifies an AddToPosition message signed by the agent's signer and relays it. The entry price is averaged by cost; the ladder stays as it is.",
    params: agentParams,
    body: z.object({ positionId, ...entry, ...signed }),
    status: 201,
    output: intentReceipt,
    errors: [400, 404, 502, 503],
  },
  async (context, { usdcAmount, signature, ...sent }) => {
    const message = { ...sent, usdcAmount: parseUsdc(usdcAmount) }
    return relayIntent(context, {
      ...sent,
      signature,
      kind: 'add',
      primaryType: 'AddToPosition',
      message: () => message,
      data: () => encodeCall(tradeRouterAbi, 'addToPosition', [message, signature]),
    })
  },
)
