import type { ExtensionTerms } from '@agent-trading-service/protocol/check'
import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { forecastPendingExits, type PendingExitForecast } from '@agent-trading-service/protocol/pending-exit-forecast'
import { type ExitMarket, isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import { formatUnits } from 'viem'
import { z } from 'zod'
import { type ExitState, getPositionTerms } from '../chain/read-intent-terms.ts'
import type { Context } from '../context.ts'
import { DEFERRALS, type Evaluation, type ExitOutcome } from '../keeper/position-entry.ts'
import type { PositionReport } from '../keeper/position-report.ts'
import { exitRule, presentExitRule } from '../resources/exit-rule.ts'
import { present } from '../resources/present.ts'
import { marketSession, ORACLE_DECIMALS, presentMarketSession, presentPrice, price } from '../resources/price.ts'
import { amount, asOf, bps, digits, hashOut, presentAsOf, unixSeconds, usdc } from '../resources/primitives.ts'
import { presentRestriction, tokenRestriction } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'

const usd = (description: string) =>
  z.string().meta({ description: `${description}; decimal US dollars for one whole token`, example: '168.02' })

const pendingExit = exitRule
  .extend({
    ruleIndex: z.int().describe('Index of the rule in exitRules of the position'),
    triggerPriceUsd: usd('Price that fires the rule: at or below it for a StopLoss, at or above it for a TakeProfit'),
    distanceBps: bps(
      'How far the price must move to reach the trigger: negative is a fall, 0 means reached; null if never quoted',
    ).nullable(),
    tokenAmount: amount("Tokens it would sell if it fired next; the token's base units"),
    minUsdcOut: usdc(
      'Minimum proceeds: the value at the trigger price, or at the current price once it is reached, less maxExitSlippageBps of the trade policy, else maxSlippageBps of the position',
    ),
  })
  .meta({ id: 'PendingExit' })

const evaluation = z
  .object({
    blockNumber: digits('Block the keeper evaluated'),
    priceUsd: usd('Price at that block'),
    at: unixSeconds('Timestamp of that block'),
  })
  .meta({ id: 'Evaluation' })

const exitOutcome = z
  .object({
    outcome: z
      .enum(['notReached', 'executed', 'partlyExecuted', 'deferred', 'failed'])
      .describe(
        'notReached: no trigger is reached. executed: sold, see firedBy; reported until the next outcome. partlyExecuted: sold what the pool takes; the rest stays due. deferred: see reason. failed: see code',
      ),
    at: unixSeconds('Since when, in block time'),
    reason: z
      .enum([...DEFERRALS, 'poolPrice'])
      .optional()
      .describe(
        "Only if deferred. priceUnsettled: older than a corporate action. marketHalted: the market is open, but the price stands still. tokenRestricted: the issuer keeps the vault from selling it, see restriction. poolPrice: the pool's price is below the exit's floor, which widens, or too far from the oracle's",
      ),
    firedBy: z.enum(['keeper', 'others']).optional().describe('Who fired it; only if executed'),
    transactionHash: hashOut.optional(),
    usdcOut: usdc("What the vault received, net of the keeper's bounty; only if executed or partlyExecuted").optional(),
    tokensLeft: amount("What is still to be sold; the token's base units; only if partlyExecuted").optional(),
    ruleIndex: z
      .int()
      .optional()
      .describe("Current index in exitRules of the rule that fired; absent for an owner's sale"),
    code: z.string().optional().describe('Error code; only if failed'),
    message: z.string().optional().describe('Error message; only if failed'),
    nextTryAt: unixSeconds('When it is retried; only if failed, partlyExecuted or waiting for the pool').optional(),
  })
  .meta({ id: 'ExitOutcome' })

const ownerClose = z
  .object({
    since: unixSeconds('When the owner started it'),
    tokenAmount: amount("What is still to be sold; the token's base units"),
    slippageBps: bps('Below the oracle value at most; null while the price is stale').nullable(),
    minUsdcOut: usdc('Minimum proceeds; null while the price is stale').nullable(),
  })
  .meta({ id: 'OwnerClose' })

export const automation = z
  .object({
    agentId: digits('Agent id'),
    positionId: digits('Position id'),
    symbol: z.string(),
    status: z.enum(['Open', 'Closed']),
    keeperEnabled: z.boolean().describe('Whether this deployment runs a keeper'),
    price,
    market: marketSession,
    pendingRules: z.array(pendingExit).describe('In ladder order; the first rule whose trigger is reached fires'),
    ownerClose: ownerClose.nullable().describe('Sale for an owner who closes all positions; else null'),
    restriction: tokenRestriction.nullable(),
    lastEvaluation: evaluation.nullable().describe('Null if not evaluated yet'),
    lastOutcome: exitOutcome
      .nullable()
      .describe('Null if not evaluated yet, while an exit is in flight, or if closed without an exit'),
    asOf,
  })
  .meta({ id: 'Automation' })

/** Terms of a sale take one quote of the venue, terms of a purchase many. */
const FULL_EXIT_BPS = 10_000

export const getPositionAutomation = defineOperation(
  {
    id: 'getPositionAutomation',
    tool: {
      name: 'svc_get_position_automation',
      description:
        'Returns what fires each exit rule of a position and what the keeper last saw. Example: {"agentId":"1","positionId":"3"}',
    },
    path: '/agents/{agentId}/positions/{positionId}/automation',
    tag: 'Positions',
    summary: 'Get the exit automation of a position',
    description:
      "Returns, for each pending exit rule, the trigger price, the distance to it, and what the rule would sell for at least; and what the keeper, which fires exits, last saw and did. While the agent's owner closes all positions, `ownerClose` says since when and the floor of the sale, and `lastOutcome` why the position is not sold yet.",
    output: automation,
  },
  async ({ trading, keeper }: Pick<Context, 'keeper' | 'trading'>, { agentId, positionId }) => {
    const [{ block, terms }, watched] = await Promise.all([
      getPositionTerms(trading, agentId, { positionId, exitBps: FULL_EXIT_BPS }),
      keeper?.find(positionId),
    ])
    const { position, token, vault, dueExit, exitState, extension } = terms
    return {
      ...presentAutomation({
        position: { ...position, dueExit, closingSince: extension?.mandate?.closingSince ?? 0n },
        symbol: token.symbol,
        market: {
          quote: token.quote,
          calendar: token.session,
          restriction: token.restriction,
          decimals: token.decimals,
          tradingPaused: vault.tradingPaused,
        },
        extension,
        exitState,
        watched,
      }),
      keeperEnabled: keeper !== undefined,
      asOf: presentAsOf(block),
    }
  },
)

const presentPendingExit = (exit: PendingExitForecast): z.input<typeof pendingExit> =>
  present(pendingExit, {
    ...presentExitRule(exit.rule),
    ruleIndex: exit.ruleIndex,
    triggerPriceUsd: formatUnits(exit.triggerPrice, ORACLE_DECIMALS),
    distanceBps: exit.distanceBps,
    tokenAmount: exit.tokenIn,
    minUsdcOut: exit.minUsdcOut,
  })

const presentEvaluation = ({ blockNumber, price, at }: Evaluation): z.input<typeof evaluation> => ({
  blockNumber,
  priceUsd: formatUnits(BigInt(price), ORACLE_DECIMALS),
  at,
})

const presentOutcome = ({ kind, ...facts }: ExitOutcome): z.input<typeof exitOutcome> => ({ outcome: kind, ...facts })

const presentOwnerClose = (
  position: WatchedPosition,
  exitState: ExitState | undefined,
): z.input<typeof ownerClose> | null => {
  if (!isOwnerClosing(position) || position.status !== PositionStatus.Open) return null
  return present(ownerClose, {
    since: position.closingSince,
    tokenAmount: position.tokenAmount,
    slippageBps: exitState?.slippageBps,
    minUsdcOut: exitState?.floorUsdc,
  })
}

type AutomationFacts = {
  position: WatchedPosition
  symbol: string
  market: ExitMarket
  /** Undefined in a deployment without the extension. */
  extension: ExtensionTerms | undefined
  /** Undefined while the price is stale. */
  exitState: ExitState | undefined
  /** What the keeper recorded; undefined if there is no keeper or it has not evaluated the position yet. */
  watched: PositionReport | undefined
}

/** Presents a position's pending rules at the current price, with what the keeper last saw and did. */
function presentAutomation({
  position,
  symbol,
  market,
  extension,
  exitState,
  watched,
}: AutomationFacts): Omit<z.input<typeof automation>, 'keeperEnabled' | 'asOf'> {
  const { quote, calendar, restriction } = market
  return {
    agentId: `${position.agentId}`,
    positionId: `${position.positionId}`,
    symbol,
    status: position.status === PositionStatus.Open ? 'Open' : 'Closed',
    price: presentPrice(quote),
    market: presentMarketSession(calendar, quote.at),
    pendingRules: forecastPendingExits(position, market, extension).map(presentPendingExit),
    ownerClose: presentOwnerClose(position, exitState),
    restriction: restriction ? presentRestriction(restriction) : null,
    lastEvaluation: watched?.evaluation ? presentEvaluation(watched.evaluation) : null,
    lastOutcome: watched?.outcome ? presentOutcome(watched.outcome) : null,
  }
}
