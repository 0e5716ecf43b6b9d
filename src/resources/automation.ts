import { formatUnits } from 'viem'
import { z } from 'zod'
import type { ExitMarket, WatchedPosition } from '../chain/exit-execution.ts'
import type { Evaluation } from '../keeper/evaluation.ts'
import type { ExitOutcome } from '../keeper/exit-outcome.ts'
import type { ExitRecord } from '../keeper/exit-record.ts'
import { type PendingExit, pendingExits } from '../protocol/pending-exits.ts'
import { exitRule, presentExitRule } from './position.ts'
import { amount, asOf, bps, digits, hashOut, unixSeconds, usdc } from './primitives.ts'
import { market, presentMarket, presentPrice, price } from './token.ts'

const usd = (description: string) =>
  z.string().meta({ description: `${description}; decimal US dollars for one whole token`, example: '168.02' })

const pendingExit = exitRule
  .extend({
    ruleIndex: z.int().meta({ description: 'Place of the rule in exitRules of the position' }),
    triggerPriceUsd: usd('Price that fires the rule: at or below it for a StopLoss, at or above it for a TakeProfit'),
    distanceBps: bps(
      'How far the price must move to reach the trigger: negative is a fall, 0 is reached; null when never quoted',
    ).nullable(),
    tokenAmount: amount("What it would sell if it fired next; the token's base units"),
    minUsdcOut: usdc(
      'Least that the sale must bring: the value at the trigger price, or at the present price once that is reached, less maxSlippageBps',
    ),
  })
  .meta({ id: 'PendingExit' })

const evaluation = z
  .object({
    blockNumber: digits('Block that the keeper looked at'),
    priceUsd: usd('Price at that block'),
    at: unixSeconds('Time of that block'),
  })
  .meta({ id: 'Evaluation' })

const exitOutcome = z
  .object({
    outcome: z.enum(['notReached', 'executed', 'deferred', 'failed']).meta({
      description:
        'notReached: no trigger is met. executed: a rule has fired, see firedBy; told until there is more to say. deferred: see reason. failed: see code',
    }),
    at: unixSeconds('Since when, in the time of the chain'),
    reason: z
      .enum(['priceStale', 'marketClosed', 'tradingPaused'])
      .optional()
      .meta({ description: 'Why it waits; only when deferred' }),
    firedBy: z
      .enum(['keeper', 'others'])
      .optional()
      .meta({ description: "Whether this deployment's keeper fired it; only when executed" }),
    transactionHash: hashOut.optional(),
    usdcOut: usdc('What the vault got, less the bounty of the keeper; only when executed').optional(),
    ruleIndex: z.int().optional().meta({ description: 'Where the fired rule stands now; only when executed' }),
    code: z.string().optional().meta({ description: 'Code of the refusal; only when failed' }),
    message: z.string().optional().meta({ description: 'What the contracts refused; only when failed' }),
    nextTryAt: unixSeconds('When it is tried again; only when failed').optional(),
  })
  .meta({ id: 'ExitOutcome' })

export const automation = z
  .object({
    agentId: digits('Agent id'),
    positionId: digits('Position id'),
    symbol: z.string(),
    status: z.enum(['Open', 'Closed']),
    keeperEnabled: z.boolean().meta({
      description: 'Whether this deployment fires exits on its own',
    }),
    price,
    market,
    pendingRules: z
      .array(pendingExit)
      .meta({ description: 'In ladder order; the first one whose trigger is met fires' }),
    lastEvaluation: evaluation.nullable().meta({ description: 'Null when the keeper has not looked at it' }),
    lastOutcome: exitOutcome.nullable().meta({
      description:
        'Null when the keeper has not looked at it, while an exit is on its way, or when it was closed without one',
    }),
    asOf,
  })
  .meta({ id: 'Automation' })

const presentPendingExit = (exit: PendingExit): z.input<typeof pendingExit> => ({
  ...presentExitRule(exit.rule),
  ruleIndex: exit.ruleIndex,
  triggerPriceUsd: formatUnits(exit.triggerPrice, ORACLE_DECIMALS),
  distanceBps: exit.distanceBps === undefined ? null : Number(exit.distanceBps),
  tokenAmount: `${exit.tokenIn}`,
  minUsdcOut: `${exit.minUsdcOut}`,
})

const ORACLE_DECIMALS = 8

const presentEvaluation = ({ blockNumber, price, at }: Evaluation): z.input<typeof evaluation> => ({
  blockNumber,
  priceUsd: formatUnits(BigInt(price), ORACLE_DECIMALS),
  at,
})

const presentOutcome = ({ kind, ...facts }: ExitOutcome): z.input<typeof exitOutcome> => ({ outcome: kind, ...facts })

type Automated = {
  position: WatchedPosition
  symbol: string
  market: ExitMarket
  /** What the keeper knows; undefined where there is none, or where it has not looked yet. */
  watched: ExitRecord | undefined
}

/** A position's pending rules against the market as it is now, beside what the keeper saw and did last. */
export function presentAutomation({
  position,
  symbol,
  market,
  watched,
}: Automated): Omit<z.input<typeof automation>, 'keeperEnabled' | 'asOf'> {
  const { quote } = market
  return {
    agentId: `${position.agentId}`,
    positionId: `${position.positionId}`,
    symbol,
    status: position.status === 0 ? 'Open' : 'Closed',
    price: presentPrice(quote),
    market: presentMarket(symbol, quote.at),
    pendingRules: pendingExits(position, market).map(presentPendingExit),
    lastEvaluation: watched?.evaluation ? presentEvaluation(watched.evaluation) : null,
    lastOutcome: watched?.outcome ? presentOutcome(watched.outcome) : null,
  }
}
