import { z } from 'zod'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { encodeCall } from '../chain/multicall.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import { getTerms } from '../chain/trading-terms.ts'
import { maxUsdcAmount, openChecks } from '../protocol/checks.ts'
import { defaultExit } from '../protocol/exit-ladder.ts'
import { hashExits } from '../protocol/typed-data.ts'
import { agentParams } from '../resources/agent.ts'
import {
  entry,
  entryQuery,
  exits,
  exitsQuery,
  intentReceipt,
  parseUsdc,
  presentAllocation,
  presentExitBounds,
  presentRiskBounds,
  presentRules,
  signed,
  toRules,
  tradeIntentQuote,
} from '../resources/intent.ts'
import { defineOperation } from './define-operation.ts'
import { estimateBuy, presentQuote } from './present-quote.ts'
import { assertLadderShape, relayIntent } from './relay-intent.ts'

const symbol = z.string().min(1).max(64).meta({ description: 'Token symbol', example: 'NVDA' })

export const getTradeIntentQuote = defineOperation(
  {
    id: 'getTradeIntentQuote',
    tool: 'svc_get_trade_intent_quote',
    method: 'get',
    path: '/agents/{agentId}/trade-intents/quote',
    tag: 'Trading',
    summary: 'Quote for opening a position',
    description:
      'What the next OpenPosition intent must match, every rule the router will apply and the most that passes now. With `symbol` and `usdcAmount` it also answers the typed data to sign, its digest, an estimate and the body to post.',
    params: agentParams,
    query: z.object({ symbol: symbol.optional(), ...entryQuery, exits: exitsQuery.optional() }),
    status: 200,
    output: tradeIntentQuote,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, config }, { agentId, symbol, usdcAmount, minTokenOut, maxSlippageBps, exits, deadline }) => {
    const amount = usdcAmount === undefined ? undefined : parseUsdc(usdcAmount)
    const token = symbol === undefined ? undefined : await tokenBySymbol(trading, symbol)
    const { block, terms } = await getTerms(trading, agentId, { token, usdcAmount: amount })
    const { agent, trackConfig } = terms
    const ladder = exits ?? defaultExit(trackConfig)
    const intent = { usdcAmount: amount, minTokenOut, maxSlippageBps, exits }
    const checks = openChecks(terms, intent)
    const allowedSymbol = await symbolsOf(trading, terms.vault.allowedTokens)
    const estimate = terms.token && amount !== undefined ? estimateBuy(terms.token, amount, maxSlippageBps) : undefined
    return {
      ...presentQuote({ trading, config }, block, {
        agentId,
        terms,
        primaryType: 'OpenPosition',
        checks,
        deadline,
        intent:
          token && amount !== undefined
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
                  exits: presentRules(ladder),
                  minTokenOut: `${minTokenOut}`,
                  maxSlippageBps,
                },
              })
            : undefined,
      }),
      vault: agent.vault,
      allocation: presentAllocation(terms.allocation),
      allowedSymbols: terms.vault.allowedTokens.map(allowedSymbol),
      trackId: agent.track,
      exitBounds: presentExitBounds(trackConfig),
      accountRiskBounds: presentRiskBounds(trackConfig),
      dailyRealizedPnlUsdc: `${terms.dailyRealizedPnlUsdc}`,
      defaultExit: presentRules(defaultExit(trackConfig)),
      maxUsdcAmount: `${maxUsdcAmount(terms, checks, intent)}`,
      assumed: { minTokenOut: `${minTokenOut}`, maxSlippageBps },
      ...(estimate && { estimate }),
      ...(token && { token }),
    }
  },
)

export const submitTradeIntent = defineOperation(
  {
    id: 'submitTradeIntent',
    tool: 'svc_submit_trade_intent',
    method: 'post',
    path: '/agents/{agentId}/trade-intents',
    tag: 'Trading',
    summary: 'Open a position',
    description:
      "Verifies an OpenPosition message signed by the agent's signer and relays it. Answers when the transaction is mined; the identical body again gives the same answer and never a second trade.",
    params: agentParams,
    body: z.object({ symbol, exits, ...entry, ...signed }),
    status: 201,
    output: intentReceipt,
    errors: [400, 404, 502, 503],
  },
  async (context, { agentId, symbol, usdcAmount, exits, minTokenOut, maxSlippageBps, ...sent }) => {
    const amount = parseUsdc(usdcAmount)
    const rules = toRules(exits)
    assertLadderShape(rules)
    const token = await tokenBySymbol(context.trading, symbol)
    const terms = { agentId, token, usdcAmount: amount, minTokenOut, maxSlippageBps }
    const { deadline, nonce, signature } = sent
    return relayIntent(context, {
      ...sent,
      agentId,
      kind: 'open',
      primaryType: 'OpenPosition',
      message: ({ agent: { vault } }) => ({ ...terms, vault, exitsHash: hashExits(rules), deadline, nonce }),
      data: ({ agent: { vault } }) =>
        encodeCall(tradeRouterAbi, 'openPosition', [{ ...terms, vault, exits: rules, deadline, nonce }, signature]),
      exits: rules,
    })
  },
)
