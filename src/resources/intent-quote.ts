import type { Check } from '@agent-trading-service/protocol/check'
import { z } from 'zod'
import { remedyOf } from '../errors/catalogue.ts'
import { accountRiskBounds, allocation } from './allocation.ts'
import { exitBounds, exitRule } from './exit-rule.ts'
import { addIntentBody, exitLadderBody, openIntentBody, reduceIntentBody } from './intent-input.ts'
import { agentPosition } from './position.ts'
import { present } from './present.ts'
import { marketSession, price } from './price.ts'
import { addressOut, amount, asOf, bps, deadlineOut, digits, unixSeconds, usdc } from './primitives.ts'
import { eip712Info, signableFields, typedDataSchemas } from './typed-data.ts'
import { tradePolicy } from './vault.ts'

export const check = z
  .object({
    rule: z.string().meta({ example: 'allocationCap' }),
    code: z
      .string()
      .describe(
        'The error code a submission would get if this rule fails; of stopDistance only where it opens a position',
      ),
    pass: z.boolean(),
    limit: z.string().nullable().describe("The rule's limit in its own unit (amounts: USDC base units)"),
    used: z
      .string()
      .nullable()
      .describe(
        'What counts towards the limit before the intent; in the unit of the limit, amounts in USDC base units',
      ),
    after: z.string().nullable().describe('What counts towards the limit after the intent; in the unit of the limit'),
    problem: z.string().optional(),
    ruleIndex: z.int().optional().describe('Index of the offending exit rule'),
    remedy: z.string().optional(),
  })
  .meta({ id: 'Check', description: "A rule of the router; stopDistance, gasBudget and intake are the service's" })

export const presentCheck = ({ problem, ...checked }: Check): z.input<typeof check> =>
  present(check, {
    ...checked,
    limit: checked.limit ?? problem?.limit,
    used: checked.used ?? problem?.given,
    after: checked.after,
    problem: problem?.problem,
    ruleIndex: problem?.ruleIndex,
    remedy: checked.pass ? undefined : remedyOf(checked.code),
  })

const estimate = z
  .object({
    source: z.enum(['venue', 'oracle']).describe('Whether the venue quoted it or it is computed from the oracle price'),
    tokenOut: amount("Tokens that an open or add would buy; the token's base units").optional(),
    shareOut: amount("Shares that they stand for, by the token's multiplier").optional(),
    usdcOut: usdc('What a reduce would bring').optional(),
    shareIn: amount('Shares that the tokens of a reduce stand for').optional(),
    priceUsd: z.string().describe('Oracle price of one whole token'),
    priceImpactBps: bps("How far the fill is below the oracle value, with the venue's fee"),
    suggestedMinTokenOut: amount('tokenOut less maxSlippageBps').optional(),
    minUsdcOut: usdc('Minimum proceeds; a reduce that brings less is rejected').optional(),
  })
  .meta({ id: 'Estimate' })

/** The fields of every quote for an agent's signer. */
export const quoteFields = {
  agentId: digits('Agent id'),
  signer: addressOut.describe('The address that must sign'),
  nonce: digits('The nonce that the next signed intent must use'),
  eip712: eip712Info,
  tradeRouter: addressOut.describe('Verifying contract of the signature'),
  checks: z.array(check).describe("Every rule that the router will apply, in the router's order"),
  bindingRule: z.string().nullable().describe('The first rule that fails, else the one that limits the amount'),
  tradePolicy: tradePolicy.nullable(),
  market: marketSession.optional(),
  price: price.optional(),
  warnings: z.array(z.string()).optional().describe('What to know even though every check passes'),
  estimatedGas: z
    .object({
      l2: z.int().describe('For executing the call'),
      l1: z.int().describe("For the call's data on L1, on Arbitrum chains; 0 elsewhere"),
    })
    .optional()
    .describe('The gas of a typical intent of this kind, which the service pays'),
  serverTime: unixSeconds('The present time'),
  suggestedDeadline: deadlineOut('A deadline ten minutes ahead'),
  asOf,
}

/** The fields of a quote for buying tokens. */
const purchaseQuoteFields = {
  allocation,
  maxUsdcAmount: usdc('The largest amount that passes every check now'),
  maxUsdcAmountHuman: z
    .string()
    .meta({ description: 'The same in human USDC, as usdcAmount takes it', example: '250' }),
  assumed: z
    .object({ minTokenOut: digits("Minimum in the token's base units"), maxSlippageBps: bps('Slippage') })
    .describe('What typedData contains where the request omits it'),
  estimate: estimate.optional(),
}

/** What the stop-losses of the resulting position would lose; absent without one. */
export const lossAtStopFields = {
  lossAtStopUsdc: usdc(
    "The most that the stop-losses of the whole resulting position lose: each sells at its trigger, at the lowest floor (the trade policy's maxExitSlippageBps below the oracle). More if the price gaps, or falls on before the sale fills",
  ).optional(),
  lossAtStopOfEquityBps: bps("That loss, of the allocation's cap plus the realized PnL of the track").optional(),
  lossAtStopOfDailyLimitBps: bps('That loss, of the daily loss limit; null if there is none').nullable().optional(),
}

export const tradeIntentQuote = z
  .object({
    ...quoteFields,
    ...purchaseQuoteFields,
    ...signableFields(typedDataSchemas.OpenPosition, { id: 'OpenIntentBody', submission: openIntentBody }),
    vault: addressOut,
    allowedSymbols: z.array(z.string()),
    trackId: z.int(),
    exitBounds,
    accountRiskBounds,
    dailyRealizedPnlUsdc: usdc("The router's net realized PnL of the day; a loss is negative"),
    defaultExit: z.array(exitRule).describe('A ladder within the bounds'),
    token: addressOut.optional().describe('Address of the symbol; absent if the request names none'),
    ...lossAtStopFields,
  })
  .meta({ id: 'TradeIntentQuote' })

export const addIntentQuote = z
  .object({
    ...quoteFields,
    ...purchaseQuoteFields,
    ...signableFields(typedDataSchemas.AddToPosition, { id: 'AddIntentBody', submission: addIntentBody }),
    positionId: digits('Position id'),
    position: agentPosition.omit({ exitRules: true, pendingRules: true }).meta({ id: 'AgentPositionWithoutLadder' }),
    ...lossAtStopFields,
  })
  .meta({ id: 'AddIntentQuote' })

export const reduceIntentQuote = z
  .object({
    ...quoteFields,
    ...signableFields(typedDataSchemas.ReducePosition, { id: 'ReduceIntentBody', submission: reduceIntentBody }),
    positionId: digits('Position id'),
    position: agentPosition,
    estimate: estimate.optional(),
  })
  .meta({ id: 'ReduceIntentQuote' })

export const exitLadderQuote = z
  .object({
    ...quoteFields,
    ...signableFields(typedDataSchemas.UpdateExitLadder, { id: 'ExitLadderIntentBody', submission: exitLadderBody }),
    positionId: digits('Position id'),
    exitBounds,
    currentRules: z.array(exitRule).describe('Fired rules first, then the pending ones'),
    pendingRules: z.array(exitRule),
    nextRuleIndex: z.int(),
    ...lossAtStopFields,
  })
  .meta({ id: 'ExitLadderQuote' })
