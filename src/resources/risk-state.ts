import type { Waste } from '@agent-trading-service/protocol/check'
import { limitBreaches } from '@agent-trading-service/protocol/limit-breaches'
import { PRICE_SOURCES } from '@agent-trading-service/protocol/oracle-price'
import { type PromotionProgress, promotionProgress } from '@agent-trading-service/protocol/promotion-criteria'
import { z } from 'zod'
import type { Block } from '../chain/configured-chain.ts'
import type { Risk } from '../chain/risk-state.ts'
import { accountRiskBounds, allocation, presentAllocation, presentRiskBounds } from './allocation.ts'
import {
  asOf,
  bps,
  capitalMode,
  digits,
  hashOut,
  presentAsOf,
  presentCapitalMode,
  unixSeconds,
  usdc,
} from './primitives.ts'
import { presentTradePolicy, tradePolicy } from './vault.ts'

export const promotionReadiness = z.object({
  minTradesRequired: z.int(),
  tradesCompleted: z.int(),
  meetsMinTrades: z.boolean(),
  evaluationPeriodSeconds: digits('Seconds on the track that promotion requires'),
  evaluationElapsedSeconds: digits('Seconds on the track so far'),
  meetsEvaluationPeriod: z.boolean(),
  promotionScoreRequired: z.int(),
  alphaScore: z
    .int()
    .nullable()
    .describe(
      'Score from 0 to 100 that the contracts compute from the realized results on the track; null if the deployment does not compute it',
    ),
  meetsAlphaScore: z.boolean().nullable(),
  eligible: z.boolean(),
  blockers: z.array(z.string()).meta({
    description: 'What is missing. The first word is the contract error that a promotion would fail with',
    example: ['TooFewTrades: 1 of 4 trades so far'],
  }),
})

const presentPromotionReadiness = (progress: PromotionProgress): z.input<typeof promotionReadiness> => ({
  minTradesRequired: Number(progress.minTrades),
  tradesCompleted: Number(progress.trades),
  meetsMinTrades: progress.meetsMinTrades,
  evaluationPeriodSeconds: `${progress.evaluationPeriod}`,
  evaluationElapsedSeconds: `${progress.elapsed}`,
  meetsEvaluationPeriod: progress.meetsEvaluationPeriod,
  promotionScoreRequired: Number(progress.minScore),
  alphaScore: progress.score === undefined ? null : Number(progress.score),
  meetsAlphaScore: progress.meetsScore ?? null,
  eligible: progress.blockers.length === 0,
  blockers: progress.blockers,
})

export const riskFigures = z
  .object({
    agentId: digits('Agent id'),
    trackId: z.int(),
    capitalMode,
    allocation,
    tradePolicy: tradePolicy.nullable(),
    accountRiskBounds,
    equity: z.object({
      peakUsdc: usdc('Highest equity so far'),
      currentUsdc: usdc('Allocation cap plus realized and unrealized PnL on the track'),
      currentDrawdownBps: bps('How far the equity is below its peak'),
    }),
    pnl: z.object({
      lifetimeRealizedUsdc: usdc('Realized PnL since registration'),
      dailyRealizedUsdc: usdc('Realized PnL of the day'),
      day: digits('UTC day; days since the Unix epoch'),
    }),
    positions: z.object({ opened: z.int(), closed: z.int(), openCount: z.int() }),
    breaches: z
      .object({ drawdown: z.boolean(), dailyLoss: z.boolean() })
      .describe('Advisory: whether a limit is currently breached'),
    derived: z.object({
      returnBps: bps('Realized and unrealized PnL on the track over the allocation cap'),
      unrealizedPnlUsdc: usdc('Mark-to-market PnL of the open positions'),
      drawdownUtilizationBps: bps('Used share of maxDrawdownBps'),
      maxDailyLossUsdc: usdc('Realized daily loss that blocks new risk; 0 means no limit'),
      dailyLossUsedUsdc: usdc('Realized loss of the day'),
      dailyLossUtilizationBps: bps('Used share of maxDailyLossUsdc'),
    }),
    waste: z
      .object({
        usdc: usdc('Counts now; it fades evenly'),
        maxUsdc: usdc('Stops buying').nullable(),
        endsAt: unixSeconds('When none of it counts any more').nullable(),
      })
      .describe('What fills lost beyond the pool fee and what fair ones cost; `maxUsdc` is null without a bound'),
    firstLoss: z
      .object({
        lockedShares: digits('Locked vault shares'),
        lockedUsdc: usdc('Their value'),
        requiredUsdc: usdc('Required by the next track').nullable(),
        bound: z.boolean().describe('Whether an open position keeps them locked'),
      })
      .nullable()
      .describe("The owner's shares that pay realized losses before depositors do"),
    examination: z
      .object({
        required: hashOut.describe('Hash of its markets, contracts and version'),
        certificate: hashOut.nullable().describe('The certificate that the owner has claimed'),
      })
      .nullable()
      .describe('The examination whose certificate the track requires before it lets agents go'),
    promotionReadiness,
    priceStale: z
      .boolean()
      .describe('Whether an open position has no fresh price; equity and unrealized PnL then use the last known price'),
    staleSymbols: z.array(z.string()),
    asOf,
  })
  .meta({ id: 'RiskFigures' })

export const riskState = riskFigures
  .extend({
    priceSources: z
      .record(z.string(), z.enum(PRICE_SOURCES))
      .describe("Who could lie about each held token's price, by symbol"),
  })
  .meta({ id: 'RiskState' })

const presentWaste = ({ usdc, maxUsdc, endsAt }: Waste) => ({
  usdc: `${usdc}`,
  maxUsdc: maxUsdc === 0n ? null : `${maxUsdc}`,
  endsAt: usdc === 0n ? null : `${endsAt}`,
})

const presentFirstLoss = ({ firstLoss, promotion }: Risk) =>
  firstLoss === undefined
    ? null
    : {
        lockedShares: `${firstLoss.shares}`,
        lockedUsdc: `${firstLoss.valueUsdc}`,
        requiredUsdc: promotion ? `${promotion.requiredFirstLossUsdc}` : null,
        bound: firstLoss.isBound,
      }

const BPS = 10_000n
const share = (part: bigint, whole: bigint) => (whole === 0n ? 0 : Number((part * BPS) / whole))

export function presentRisk(
  agentId: bigint,
  block: Block,
  risk: Risk,
  symbol: (token: `0x${string}`) => string,
): z.input<typeof riskFigures> {
  const { agent, allocation, trackConfig, equity, dailyRealizedPnlUsdc, capitalMode, effectiveCap } = risk
  const { drawdownBps } = equity
  const breaches = limitBreaches({ cap: allocation.cap, drawdownBps, dailyRealizedPnlUsdc }, trackConfig)
  return {
    agentId: `${agentId}`,
    trackId: agent.track,
    capitalMode: presentCapitalMode(capitalMode),
    allocation: presentAllocation({ ...allocation, effectiveCap, capitalMode }),
    tradePolicy: risk.tradePolicy ? presentTradePolicy(risk.tradePolicy) : null,
    accountRiskBounds: presentRiskBounds(trackConfig),
    equity: {
      peakUsdc: `${equity.peak}`,
      currentUsdc: `${equity.current}`,
      currentDrawdownBps: Number(equity.drawdownBps),
    },
    pnl: {
      lifetimeRealizedUsdc: `${equity.realized}`,
      dailyRealizedUsdc: `${dailyRealizedPnlUsdc}`,
      day: `${risk.day}`,
    },
    positions: { opened: Number(risk.opened), closed: Number(risk.closed), openCount: equity.openCount },
    breaches: { drawdown: breaches.drawdown, dailyLoss: breaches.dailyLoss },
    derived: {
      returnBps: share(equity.current - allocation.cap, allocation.cap),
      unrealizedPnlUsdc: `${equity.unrealized}`,
      drawdownUtilizationBps: share(drawdownBps, trackConfig.maxDrawdownBps),
      maxDailyLossUsdc: `${breaches.maxDailyLossUsdc}`,
      dailyLossUsedUsdc: `${breaches.dailyLossUsedUsdc}`,
      dailyLossUtilizationBps: share(breaches.dailyLossUsedUsdc, breaches.maxDailyLossUsdc),
    },
    waste: presentWaste(risk.waste),
    firstLoss: presentFirstLoss(risk),
    examination: risk.examination
      ? { required: risk.examination.examination, certificate: risk.examination.certificate ?? null }
      : null,
    promotionReadiness: presentPromotionReadiness(promotionProgress(risk, block.timestamp)),
    priceStale: equity.staleTokens.length > 0,
    staleSymbols: equity.staleTokens.map(symbol),
    asOf: presentAsOf(block),
  }
}
