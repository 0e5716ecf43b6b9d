import { defaultLadder } from '@agent-trading-service/protocol/exit-ladder-validation'
import { openChecks } from '@agent-trading-service/protocol/router-checks'
import { lossAtStop, stopDistanceChecks } from '@agent-trading-service/protocol/stop-loss'
import { hashExits } from '@agent-trading-service/protocol/typed-data'
import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { getTerms } from '../chain/read-intent-terms.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { lossWarnings, purchaseAmount, stopRefusal } from '../intents/stop-loss.ts'
import { assertLadderShape, relayTradeIntent } from '../intents/trade-intent.ts'
import { presentPurchase, presentQuote } from '../intents/trade-quote.ts'
import { presentRiskBounds } from '../resources/allocation.ts'
import {
  ladderQuery,
  presentExitBounds,
  presentExitRule,
  requestedLadder,
  toExitRules,
} from '../resources/exit-rule.ts'
import { openIntentBody, purchaseQuery, symbol, withNote } from '../resources/intent-input.ts'
import { tradeIntentQuote } from '../resources/intent-quote.ts'
import { intentReceipt } from '../resources/intent-status.ts'
import { humanUsdc, parseUsdc } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const getTradeIntentQuote = defineOperation(
  {
    id: 'getTradeIntentQuote',
    tool: {
      name: 'svc_get_trade_intent_quote',
      card: 'ticket',
      description:
        'First step of a purchase (long only): what passes now, and an estimate. Pass symbol, usdcAmount (human USDC) and exits. If passes is false, firstFailure says why. Then sign typedData (EIP-712, detail full) and call svc_submit_trade_intent. Example: {"agentId":"1","symbol":"NVDA","usdcAmount":"250","exits":"-800:10000,1500:10000"}',
    },
    path: '/agents/{agentId}/trade-intents/quote',
    tag: 'Trading',
    summary: 'Get a quote for opening a position',
    description:
      'Returns what the next OpenPosition intent must match, every rule the router will apply, and the largest amount that passes now. With `symbol` and `usdcAmount`, also returns the typed data to sign, its digest, an estimate and the body to post.',
    query: z.object({
      symbol: symbol.optional(),
      ...purchaseQuery,
      ...ladderQuery,
    }),
    output: tradeIntentQuote,
  },
  async (context: Context, { agentId, symbol, minTokenOut, maxSlippageBps, deadline: requestedDeadline, ...given }) => {
    const { trading } = context
    const exits = requestedLadder(given)
    const token = symbol === undefined ? undefined : await tokenBySymbol(trading, symbol)
    const amount = await purchaseAmount(given, async () => {
      const { terms } = await getTerms(trading, agentId)
      return { terms, maxSlippageBps, usdcCostBasis: 0n, exits: exits ?? defaultLadder(terms.trackConfig) }
    })
    const usdcAmount = given.usdcAmount ?? (amount === undefined ? undefined : humanUsdc(amount))
    const { block, terms } = await getTerms(trading, agentId, { token, usdcAmount: amount })
    const { agent, trackConfig } = terms
    const ladder = exits ?? defaultLadder(trackConfig)
    const deadline = quoteDeadline(requestedDeadline, block, terms.extension)
    const intent = { usdcAmount: amount, minTokenOut, maxSlippageBps, deadline, exits }
    const purchase = amount === undefined ? undefined : { usdcAmount: amount, maxSlippageBps, exits: ladder }
    const checks = [...(purchase ? stopDistanceChecks(terms, purchase) : []), ...openChecks(terms, intent)]
    const loss =
      amount === undefined ? undefined : lossAtStop(terms, { usdcCostBasis: amount, maxSlippageBps, exits: ladder })
    const symbolOf = await symbolsOf(trading, terms.vault.allowedTokens)
    return {
      ...(await presentQuote(context, block, {
        agentId,
        terms,
        primaryType: 'OpenPosition',
        checks,
        deadline,
        intent:
          symbol !== undefined && token && usdcAmount !== undefined && amount !== undefined
            ? ({ nonce, deadline }) => ({
                message: {
                  agentId,
                  vault: agent.vault,
                  token,
                  usdcAmount: amount,
                  minTokenOut,
                  maxSlippageBps,
                  exitsHash: hashExits(ladder),
                  deadline,
                  nonce,
                },
                body: {
                  symbol,
                  usdcAmount,
                  exits: ladder.map(presentExitRule),
                  minTokenOut: `${minTokenOut}`,
                  maxSlippageBps,
                },
              })
            : undefined,
        warnings: loss ? lossWarnings(loss) : [],
        missing: [...(symbol === undefined ? ['symbol'] : []), ...(usdcAmount === undefined ? ['usdcAmount'] : [])],
      })),
      ...presentPurchase(terms, intent, { checks, loss, capitalMode: terms.extension?.capitalMode }),
      vault: agent.vault,
      allowedSymbols: terms.vault.allowedTokens.map(symbolOf),
      trackId: agent.track,
      exitBounds: presentExitBounds(trackConfig),
      accountRiskBounds: presentRiskBounds(trackConfig),
      dailyRealizedPnlUsdc: `${terms.dailyRealizedPnlUsdc}`,
      defaultExit: defaultLadder(trackConfig).map(presentExitRule),
      ...(token && { token }),
    }
  },
)

export const submitTradeIntent = defineOperation(
  {
    id: 'submitTradeIntent',
    tool: {
      name: 'svc_submit_trade_intent',
      card: 'ticket',
      description:
        'Opens a position. Before: svc_get_trade_intent_quote; send its body with agentId and signature. Repeating it is safe: it executes once. After: svc_get_agent_position with the positionId.',
    },
    method: 'post',
    path: '/agents/{agentId}/trade-intents',
    tag: 'Trading',
    summary: 'Open a position',
    description:
      "Verifies an OpenPosition message signed by the agent's signer and relays it. Responds once the transaction is mined. Posting the identical body again returns the same receipt and never trades twice.",
    body: withNote(openIntentBody),
    status: 201,
    output: intentReceipt,
  },
  async (context: Context, { agentId, symbol, usdcAmount, exits, minTokenOut, maxSlippageBps, ...signed }, call) => {
    const amount = parseUsdc(usdcAmount)
    const rules = toExitRules(exits)
    assertLadderShape(rules)
    const { deadline, nonce } = signed
    // An unknown symbol is refused after an unknown agent.
    const bought = await tokenBySymbol(context.trading, symbol).catch(() => undefined)
    const traded = bought && { token: bought }
    const intent = { ...signed, agentId, kind: 'OpenPosition', exits: rules, traded } as const
    return relayTradeIntent(context, call, intent, async ({ agent: { vault } }) => {
      const token = bought ?? (await tokenBySymbol(context.trading, symbol))
      const terms = { agentId, vault, token, usdcAmount: amount, minTokenOut, maxSlippageBps, deadline, nonce }
      return {
        message: { ...terms, exitsHash: hashExits(rules) },
        data: accepted => encodeCall(tradeRouterAbi, 'openPosition', [{ ...terms, exits: rules }, accepted]),
        refusalOfTerms: () => stopRefusal(context.trading, { ...terms, exits: rules }),
      }
    })
  },
)
