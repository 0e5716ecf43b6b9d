import { FULL_EXIT_BPS } from '@agent-trading-service/protocol/exit-ladder-validation'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { droppedRules } from '@agent-trading-service/protocol/exit-triggers'
import { percentText } from '@agent-trading-service/protocol/percent'
import { pendingRules as pendingRulesOf } from '@agent-trading-service/protocol/position'
import { ladderUpdateChecks } from '@agent-trading-service/protocol/router-checks'
import { ladderStopDistanceChecks, lossAtStop } from '@agent-trading-service/protocol/stop-loss'
import { hashExits } from '@agent-trading-service/protocol/typed-data'
import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getPositionTerms } from '../chain/read-intent-terms.ts'
import type { Context } from '../context.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { lossWarnings, presentLossAtStop } from '../intents/stop-loss.ts'
import { assertLadderShape, relayTradeIntent } from '../intents/trade-intent.ts'
import { presentQuote } from '../intents/trade-quote.ts'
import {
  ladderQuery,
  presentExitBounds,
  presentExitRule,
  requestedLadder,
  toExitRules,
} from '../resources/exit-rule.ts'
import { exitLadderBody, positionQuery, withNote } from '../resources/intent-input.ts'
import { exitLadderQuote } from '../resources/intent-quote.ts'
import { intentReceipt } from '../resources/intent-status.ts'
import { presentPosition } from '../resources/position.ts'
import { deadline } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getExitLadderIntentQuote = defineOperation(
  {
    id: 'getExitLadderIntentQuote',
    tool: {
      name: 'svc_get_exit_ladder_intent_quote',
      description:
        'First step of replacing the pending exit rules of a position. Pass exits within exitBounds, sign typedData in a wallet (EIP-712), then call svc_submit_exit_ladder_intent. Example: {"agentId":"1","positionId":"3","exits":"-500:10000,2000:10000"}',
    },
    path: '/agents/{agentId}/exit-ladder-intents/quote',
    tag: 'Trading',
    summary: 'Get a quote for changing the exit ladder of a position',
    description:
      'Returns what the next UpdateExitLadder intent must match, the current rules and the bounds of new ones. With `exits`, also returns the typed data to sign, its digest and the body to post.',
    query: z.object({ ...positionQuery, ...ladderQuery, deadline: deadline.optional() }),
    output: exitLadderQuote,
  },
  async (context: Context, { agentId, positionId, deadline: requestedDeadline, ...given }) => {
    const { trading } = context
    const exits = requestedLadder(given)
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId, exitBps: FULL_EXIT_BPS })
    const { position, token } = terms
    const loss = lossAtStop(terms, { ...position, exits: exits ?? pendingRulesOf(position) })
    const deadline = quoteDeadline(requestedDeadline, block, terms.extension)
    const { exitRules, pendingRules, nextRuleIndex } = presentPosition(position, token.symbol)
    return {
      ...(await presentQuote(context, block, {
        agentId,
        terms,
        primaryType: 'UpdateExitLadder',
        checks: [
          ...ladderUpdateChecks(terms, { exits, deadline }),
          ...(exits === undefined ? [] : ladderStopDistanceChecks({ token, position }, exits)),
        ],
        deadline,
        intent:
          exits === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, exitsHash: hashExits(exits), deadline, nonce },
                body: { positionId: `${positionId}`, exits: exits.map(presentExitRule) },
              }),
        warnings: [
          ...(loss ? lossWarnings(loss) : []),
          ...(exits === undefined ? [] : droppedRules(pendingRulesOf(position), exits).map(droppedText)),
        ],
        missing: ['exits'],
      })),
      positionId: `${positionId}`,
      exitBounds: presentExitBounds(terms.trackConfig),
      currentRules: exitRules,
      pendingRules,
      nextRuleIndex,
      ...(loss && presentLossAtStop(loss)),
    }
  },
)

const droppedText = ({ triggerBps }: ExitRule) =>
  `The new ladder has no ${triggerBps < 0n ? 'stop-loss' : 'take-profit'}: the pending one at ${percentText(Number(triggerBps))} ends. Name it too to keep it.`

export const submitExitLadderIntent = defineOperation(
  {
    id: 'submitExitLadderIntent',
    tool: {
      name: 'svc_submit_exit_ladder_intent',
      description:
        'Replaces the pending exit rules of a position; fired rules stay. Before: svc_get_exit_ladder_intent_quote; send its body with agentId and signature. Repeating it is safe: it executes once.',
    },
    method: 'post',
    path: '/agents/{agentId}/exit-ladder-intents',
    tag: 'Trading',
    summary: 'Replace the pending exit rules of a position',
    description:
      "Verifies an UpdateExitLadder message signed by the agent's signer and relays it. The new rules replace the pending ones; rules that have fired stay.",
    body: withNote(exitLadderBody),
    status: 201,
    output: intentReceipt,
  },
  async (context: Context, { exits, signature, note, ...intent }, call) => {
    const rules = toExitRules(exits)
    assertLadderShape(rules)
    const traded = { positionId: intent.positionId }
    const posted = { ...intent, signature, note, kind: 'UpdateExitLadder', exits: rules, traded } as const
    return relayTradeIntent(context, call, posted, () => ({
      message: { ...intent, exitsHash: hashExits(rules) },
      data: accepted => encodeCall(tradeRouterAbi, 'updateExitLadder', [{ ...intent, exits: rules }, accepted]),
    }))
  },
)
