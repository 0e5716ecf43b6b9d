import type { Check } from '@agent-trading-service/protocol/check'
import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { addChecks, ladderUpdateChecks, openChecks, reduceChecks } from '@agent-trading-service/protocol/router-checks'
import { saleAtStops, stopDistanceChecks } from '@agent-trading-service/protocol/stop-loss'
import { zeroAddress } from 'viem'
import { z } from 'zod'
import type { TradingChain } from '../chain/configured-chain.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import { readOrderBookDomain } from '../chain/read-order-terms.ts'
import { readDecimals } from '../chain/token-decimals.ts'
import { symbolsOf, tokensBySymbols } from '../chain/token-symbols.ts'
import { type IntentOutcome, type OpenOrders, runWhatIf, type WhatIf, type WhatIfIntent } from '../chain/what-if.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { assertLadderShape } from '../intents/trade-intent.ts'
import { exits, toExitRules } from '../resources/exit-rule.ts'
import { addIntentBody, exitLadderBody, openIntentBody, reduceIntentBody } from '../resources/intent-input.ts'
import { check, presentCheck } from '../resources/intent-quote.ts'
import { orderId } from '../resources/order.ts'
import { agentPosition, presentPosition } from '../resources/position.ts'
import { priceUsdIn } from '../resources/price.ts'
import { amount, asOf, digits, parseUsdc, presentAsOf, usdc } from '../resources/primitives.ts'
import { presentRisk, riskFigures } from '../resources/risk-state.ts'
import { defineOperation } from './define-operation.ts'

const MAX_INTENTS = 6
const MAX_PRICES = 20

const unsigned = { deadline: true, nonce: true, signature: true } as const
const intent = z.discriminatedUnion('kind', [
  openIntentBody
    .omit(unsigned)
    .extend({ kind: z.literal('open') })
    .meta({ id: 'WhatIfOpen' }),
  addIntentBody
    .omit(unsigned)
    .extend({ kind: z.literal('add') })
    .meta({ id: 'WhatIfAdd' }),
  reduceIntentBody
    .omit(unsigned)
    .extend({ kind: z.literal('reduce') })
    .meta({ id: 'WhatIfReduce' }),
  exitLadderBody
    .omit(unsigned)
    .extend({ kind: z.literal('exitLadder'), exits })
    .meta({ id: 'WhatIfExitLadder' }),
])

export const whatIf = defineOperation(
  {
    id: 'whatIf',
    tool: {
      name: 'svc_what_if',
      set: 'venue',
      description:
        'Shows what would happen at other prices and after intents, without sending anything: risk before and after, the checks of each intent in turn, the exits and orders that would fire, and the worst case at the stops. Example: {"agentId":"1","prices":{"NVDA":"110"},"intents":[{"kind":"reduce","positionId":"3","exitBps":5000}]}',
    },
    method: 'post',
    path: '/agents/{agentId}/what-if',
    tag: 'Trading',
    summary: 'Try prices and intents without trading',
    description:
      'Sets `prices`, executes `intents` in their order as if the agent had signed them, then fires the exits and the orders that are due. The contracts run it in one `eth_call` on a copy of the newest block: nothing is sent and no nonce moves. Pools follow the prices, with the liquidity of their present price.',
    body: z.object({
      prices: z
        .record(z.string().min(1).max(64), priceUsdIn)
        .refine(given => Object.keys(given).length <= MAX_PRICES, `must have at most ${MAX_PRICES} symbols`)
        .optional()
        .meta({ description: 'US dollars by symbol', example: { NVDA: '110' } }),
      intents: z
        .array(intent)
        .max(MAX_INTENTS)
        .default([])
        .describe('Bodies of intents without deadline, nonce and signature'),
    }),
    bodyIsOptional: true,
    readsOnly: true,
    units: 10,
    output: z
      .object({
        agentId: digits('Agent id'),
        before: riskFigures,
        intents: z.array(
          z.object({
            kind: z.enum(['open', 'add', 'reduce', 'exitLadder']),
            executed: z.boolean().describe('Whether the router accepts it; a refused one changes nothing'),
            code: z.string().nullable().describe('The error code of its refusal'),
            error: z.string().nullable(),
            remedy: z.string().nullable(),
            positionId: digits('The position; null if a refused intent would have opened it').nullable(),
            tokensAdded: amount('Of an add').nullable(),
            usdcOut: usdc('Of a reduce').nullable(),
            checks: z
              .array(check)
              .describe('As in its quote, after the intents before it; gas and intake are not checked'),
          }),
        ),
        exits: z
          .array(
            z.object({
              positionId: digits('Position id'),
              symbol: z.string(),
              status: z
                .enum(['executed', 'partlyExecuted', 'deferred', 'poolPrice', 'stalePrice', 'paused', 'failed'])
                .describe('What the router does with a due exit. The keeper waits for market hours too'),
            }),
          )
          .describe('The exits that are due after the intents'),
        orders: z
          .array(
            z.object({
              orderId,
              symbol: z.string(),
              executed: z.boolean().describe('One part, if it has several'),
              code: z.string().nullable().describe('The error code of its refusal'),
            }),
          )
          .describe('The open orders whose price or time has come, after the exits'),
        positions: z.array(agentPosition).describe('The open positions after all of it'),
        after: riskFigures,
        worstCase: z
          .object({
            equityUsdc: usdc('Equity if every pending stop-loss fires at its trigger and fills at its floor'),
            lossUsdc: usdc('How far that is below the equity after'),
            unprotectedUsdc: usdc('Value of tokens that no stop-loss sells; they keep their value here'),
          })
          .meta({ id: 'WorstCase' }),
        asOf,
      })
      .meta({ id: 'WhatIf' }),
  },
  async (context: Context, { agentId, prices = {}, intents: given }) => {
    const { trading } = context
    const [tokens, open, ...intents] = await Promise.all([
      tokensBySymbols(trading, Object.keys(prices)),
      readOpenOrders(context, agentId),
      ...given.map(each => toIntent(trading, each)),
    ])
    const result = await runWhatIf(trading, {
      agentId,
      intents,
      open,
      prices: Object.values(prices).map((price, index) => ({
        token: tokens[index] ?? '0x',
        price,
      })),
    })
    const { block, before, after, held, positions } = result
    const symbolOf = await symbolsOf(trading, [
      ...[...held, ...positions, ...open.orders.map(({ order }) => order)].map(({ token }) => token),
      ...before.equity.staleTokens,
    ])
    const decimalsOf = await readDecimals(
      trading,
      positions.map(({ token }) => token),
    )
    const present = (risk: WhatIf['before']) => presentRisk(agentId, block, risk, symbolOf)
    return {
      agentId: `${agentId}`,
      before: present(before),
      intents: intents.map((intent, index) => presentOutcome(intent, result, index)),
      exits: result.exits.flatMap(({ positionId, status }) => {
        const position = held.find(each => each.positionId === positionId)
        if (position === undefined || status === 'notDue' || status === 'notOpen') return []
        return [{ positionId: `${positionId}`, symbol: symbolOf(position.token), status }]
      }),
      orders: result.orders.flatMap(({ orderId, order, revertData }) => {
        if (revertData !== undefined && waiting.has(decodeRevert(revertData)?.name ?? '')) return []
        const { code } = revertData === undefined ? { code: null } : refusalOfRevert(revertData).body
        return [{ orderId, symbol: symbolOf(order.token), executed: code === null, code }]
      }),
      positions: positions.map(position => presentPosition(position, symbolOf(position.token))),
      after: present(after),
      worstCase: worstCaseOf(result, decimalsOf),
      asOf: presentAsOf(block),
    }
  },
)

/** Why an order does not come into question at these prices. */
const waiting = new Set<string>([
  ...['ConditionNotMet', 'OrderNotDue', 'PriceBeforeOrder', 'StalePrice'],
  ...['OrderNotOpen', 'OrderIsVoid', 'OrderExpired', 'PositionNotOpen'],
])

/**
 * Reads the open orders of an agent from the index, the oldest first; none in a deployment without an order book.
 * Throws HISTORY_UNAVAILABLE.
 */
async function readOpenOrders({ trading, history }: HistoryContext, agentId: bigint): Promise<OpenOrders> {
  const domain = await readOrderBookDomain(trading)
  if (domain === undefined) return { book: zeroAddress, orders: [] }
  const { orders } = await history.openOrders(agentId)
  return { book: domain.verifyingContract, orders: orders.toReversed() }
}

/** Returns an intent with its amounts in base units. Throws UNKNOWN_SYMBOL, INVALID_AMOUNT, INVALID_EXIT_RULES. */
async function toIntent(trading: TradingChain, given: z.output<typeof intent>): Promise<WhatIfIntent> {
  if (given.kind === 'reduce') return given
  if (given.kind === 'add') return { ...given, usdcAmount: parseUsdc(given.usdcAmount) }
  const rules = toExitRules(given.exits)
  assertLadderShape(rules)
  if (given.kind === 'exitLadder') return { ...given, exits: rules }
  const { symbol, usdcAmount, ...open } = given
  const [token] = await tokensBySymbols(trading, [symbol])
  if (token === undefined) throw refuse('UNKNOWN_SYMBOL', { symbol, nearest: undefined })
  return { ...open, token, exits: rules, usdcAmount: parseUsdc(usdcAmount) }
}

function presentOutcome(intent: WhatIfIntent, { intents, signer, block }: WhatIf, index: number) {
  const outcome = intents[index] as IntentOutcome
  const { returned, revertData, terms } = outcome
  const { kind } = intent
  const refusal =
    revertData && refusalOfRevert(revertData, { agentId: terms.agentId, signer, now: block.timestamp }).body
  return {
    kind,
    executed: refusal === undefined,
    code: refusal?.code ?? null,
    error: refusal?.error ?? null,
    remedy: refusal?.remedy ?? null,
    positionId: kind === 'open' ? textOrNull(returned) : `${intent.positionId}`,
    tokensAdded: kind === 'add' ? textOrNull(returned) : null,
    usdcOut: kind === 'reduce' ? textOrNull(returned) : null,
    checks: checksOf(intent, outcome, block.timestamp).map(presentCheck),
  }
}

const textOrNull = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

/** Returns the checks of an intent, as its quote has them. */
function checksOf(intent: WhatIfIntent, { terms }: IntentOutcome, deadline: bigint): Check[] {
  switch (intent.kind) {
    case 'open':
      return [...stopDistanceChecks(terms, intent), ...openChecks(terms, { ...intent, deadline })]
    case 'add':
      return addChecks(terms, { ...intent, deadline })
    case 'reduce':
      return reduceChecks(terms, { ...intent, deadline })
    case 'exitLadder':
      return ladderUpdateChecks(terms, { ...intent, deadline })
  }
}

/** Returns what is left if every pending stop-loss fills at its floor. */
function worstCaseOf({ positions, after }: WhatIf, decimalsOf: Awaited<ReturnType<typeof readDecimals>>) {
  const { equity, tradePolicy } = after
  let [lossUsdc, unprotectedUsdc] = [0n, 0n]
  for (const position of positions) {
    const { tokenAmount, usdcCostBasis, unrealizedPnlUsdc = 0n } = position
    const extension = tradePolicy && { tradePolicy }
    const { usdcOut, tokensLeft } = saleAtStops(position, decimalsOf(position.token), extension)
    const value = usdcCostBasis + unrealizedPnlUsdc
    const kept = tokenAmount === 0n ? 0n : (value * tokensLeft) / tokenAmount
    lossUsdc += value - kept - usdcOut
    unprotectedUsdc += kept
  }
  return {
    equityUsdc: `${equity.current - lossUsdc}`,
    lossUsdc: `${lossUsdc}`,
    unprotectedUsdc: `${unprotectedUsdc}`,
  }
}
