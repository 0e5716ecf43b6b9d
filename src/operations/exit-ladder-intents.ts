import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/multicall.ts'
import { getPositionTerms } from '../chain/trading-terms.ts'
import { ladderUpdateChecks } from '../protocol/checks.ts'
import { hashExits } from '../protocol/typed-data.ts'
import { agentParams } from '../resources/agent.ts'
import {
  exitLadderQuote,
  exits,
  exitsQuery,
  intentReceipt,
  positionQuery,
  presentExitBounds,
  presentRules,
  signed,
  toRules,
} from '../resources/intent.ts'
import { presentPosition } from '../resources/position.ts'
import { deadline, positionId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { presentQuote } from './present-quote.ts'
import { assertLadderShape, relayIntent } from './relay-intent.ts'

export const getExitLadderIntentQuote = defineOperation(
  {
    id: 'getExitLadderIntentQuote',
    tool: 'svc_get_exit_ladder_intent_quote',
    method: 'get',
    path: '/agents/{agentId}/exit-ladder-intents/quote',
    tag: 'Trading',
    summary: 'Quote for changing the exit ladder of a position',
    description:
      'What the next UpdateExitLadder intent must match, the rules that stand and the bounds of new ones. With `exits` it also answers the typed data to sign, its digest and the body to post.',
    params: agentParams,
    query: z.object({ ...positionQuery, exits: exitsQuery.optional(), deadline: deadline.optional() }),
    status: 200,
    output: exitLadderQuote,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config }, { agentId, positionId, exits, deadline }) => {
    const { block, terms } = await getPositionTerms(trading, agentId, { positionId })
    const { position, token } = terms
    const { exitRules, pendingRules, nextRuleIndex } = presentPosition(position, token.symbol)
    return {
      ...presentQuote({ trading, config }, block, {
        agentId,
        terms,
        primaryType: 'UpdateExitLadder',
        checks: ladderUpdateChecks(terms, exits),
        deadline,
        intent:
          exits === undefined
            ? undefined
            : ({ nonce, deadline }) => ({
                message: { agentId, positionId, exitsHash: hashExits(exits), deadline, nonce },
                body: { positionId: `${positionId}`, exits: presentRules(exits) },
              }),
      }),
      positionId: `${positionId}`,
      exitBounds: presentExitBounds(terms.trackConfig),
      currentRules: exitRules,
      pendingRules,
      nextRuleIndex,
    }
  },
)

export const submitExitLadderIntent = defineOperation(
  {
    id: 'submitExitLadderIntent',
    tool: 'svc_submit_exit_ladder_intent',
    method: 'post',
    path: '/agents/{agentId}/exit-ladder-intents',
    tag: 'Trading',
    summary: 'Replace the pending exit rules of a position',
    description:
      "Verifies an UpdateExitLadder message signed by the agent's signer and relays it. The new rules replace what is pending; rules that have fired stay.",
    params: agentParams,
    body: z.object({ positionId, exits, ...signed }),
    status: 201,
    output: intentReceipt,
    errors: [400, 404, 502, 503],
  },
  async (context, { exits, signature, ...sent }) => {
    const rules = toRules(exits)
    assertLadderShape(rules)
    return relayIntent(context, {
      ...sent,
      signature,
      kind: 'ladder',
      primaryType: 'UpdateExitLadder',
      message: () => ({ ...sent, exitsHash: hashExits(rules) }),
      data: () => encodeCall(tradeRouterAbi, 'updateExitLadder', [{ ...sent, exits: rules }, signature]),
      exits: rules,
    })
  },
)
