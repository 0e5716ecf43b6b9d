import { pendingRules } from '@agent-trading-service/protocol/position'
import { addChecks } from '@agent-trading-service/protocol/router-checks'
import { addStopDistanceChecks, lossAtStop } from '@agent-trading-service/protocol/stop-loss'
import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getPositionTerms } from '../chain/read-intent-terms.ts'
import type { Context } from '../context.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { lossWarnings, purchaseAmount } from '../intents/stop-loss.ts'
import { relayTradeIntent } from '../intents/trade-intent.ts'
import { presentPurchase, presentQuote } from '../intents/trade-quote.ts'
import { addIntentBody, positionQuery, purchaseQuery, withNote } from '../resources/intent-input.ts'
import { addIntentQuote } from '../resources/intent-quote.ts'
import { intentReceipt } from '../resources/intent-status.ts'
import { presentPosition } from '../resources/position.ts'
import { humanUsdc, parseUsdc } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getAddIntentQuote = defineOperation(
  {
    id: 'getAddIntentQuote',
    tool: {
      name: 'svc_get_add_intent_quote',
      description:
        'First step of adding to a position; its ladder stays. Pass usdcAmount (human USDC), sign typedData in a wallet (EIP-712), then call svc_submit_add_intent. Example: {"agentId":"1","positionId":"3","usdcAmount":"100"}',
    },
    path: '/agents/{agentId}/add-intents/quote',
    tag: 'Trading',
    summary: 'Get a quote for adding to a position',
    description:
      'Returns what the next AddToPosition intent must match, every rule the router will apply, and the largest amount that passes now. With `usdcAmount`, also returns the typed data to sign, its digest, an estimate and the body to post.',
    query: z.object({ ...positionQuery, ...purchaseQuery }),
    output: addIntentQuote,
  },
  async (
    context: Context,
    { agentId, positionId, minTokenOut, maxSlippageBps, deadline: requestedDeadline, ...given },
  ) => {
    const { trading } = context
    const amount = await purchaseAmount(given, async () => {
      const { terms } = await getPositionTerms(trading, agentId, { positionId })
      const { position } = terms
      return { terms, ...position, exits: pendingRules(position) }
    })
    const usdcAmount = given.usdcAmount ?? (amount === undefined ? undefined : humanUsdc(amount))
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId, usdcAmount: amount })
    const { position, token } = terms
    const deadline = quoteDeadline(requestedDeadline, block, terms.extension)
    const intent = { usdcAmount: amount, minTokenOut, maxSlippageBps, deadline }
    const checks = [
      ...addChecks(terms, intent),
      ...(amount === undefined ? [] : addStopDistanceChecks({ token, position }, amount)),
    ]
    const loss =
      amount === undefined
        ? undefined
        : lossAtStop(terms, {
            ...position,
            usdcCostBasis: position.usdcCostBasis + amount,
            exits: pendingRules(position),
          })
    const { exitRules: _, pendingRules: __, ...withoutLadder } = presentPosition(position, token.symbol)
    return {
      ...(await presentQuote(context, block, {
        agentId,
        terms,
        primaryType: 'AddToPosition',
        checks,
        deadline,
        intent:
          usdcAmount === undefined || amount === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, usdcAmount: amount, minTokenOut, maxSlippageBps, deadline, nonce },
                body: { positionId: `${positionId}`, usdcAmount, minTokenOut: `${minTokenOut}`, maxSlippageBps },
              }),
        warnings: loss ? lossWarnings(loss) : [],
        missing: ['usdcAmount'],
      })),
      positionId: `${positionId}`,
      ...presentPurchase(terms, intent, { checks, loss, capitalMode: position.capitalMode }),
      position: withoutLadder,
    }
  },
)

export const submitAddIntent = defineOperation(
  {
    id: 'submitAddIntent',
    tool: {
      name: 'svc_submit_add_intent',
      description:
        'Adds to a position; the entry price is averaged. Before: svc_get_add_intent_quote; send its body with agentId and signature. Repeating it is safe: it executes once.',
    },
    method: 'post',
    path: '/agents/{agentId}/add-intents',
    tag: 'Trading',
    summary: 'Add to a position',
    description:
      "Verifies an AddToPosition message signed by the agent's signer and relays it. The entry price becomes the average by cost; the ladder stays as it is.",
    body: withNote(addIntentBody),
    status: 201,
    output: intentReceipt,
  },
  async (context: Context, { usdcAmount, signature, note, ...intent }, call) => {
    const message = { ...intent, usdcAmount: parseUsdc(usdcAmount) }
    const traded = { positionId: intent.positionId }
    return relayTradeIntent(context, call, { ...intent, signature, note, kind: 'AddToPosition', traded }, () => ({
      message,
      data: accepted => encodeCall(tradeRouterAbi, 'addToPosition', [message, accepted]),
    }))
  },
)
