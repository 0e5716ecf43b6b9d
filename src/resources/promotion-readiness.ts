import { z } from 'zod'
import type { Risk } from '../chain/risk-state.ts'
import { AgentStatus, Track } from '../protocol/enums.ts'
import type { PromotionCriteria } from '../protocol/promotion-criteria.ts'
import { digits } from './primitives.ts'

export const promotionReadiness = z.object({
  minTradesRequired: z.int(),
  tradesCompleted: z.int(),
  meetsMinTrades: z.boolean(),
  evaluationPeriodSeconds: digits('Seconds on the track that promotion requires'),
  evaluationElapsedSeconds: digits('Seconds on the track so far'),
  meetsEvaluationPeriod: z.boolean(),
  promotionScoreRequired: z.int(),
  alphaScore: z.int().nullable().meta({
    description:
      'Score from 0 to 100 that the contracts compute from the realized results on the track; null if the deployment does not compute it',
  }),
  meetsAlphaScore: z.boolean().nullable(),
  eligible: z.boolean(),
  blockers: z.array(z.string()).meta({
    description: 'What is missing. The first word is the contract error that a promotion would fail with',
    example: ['TooFewTrades: 1 of 4 trades so far'],
  }),
})

export function presentPromotionReadiness(risk: Risk, now: bigint): z.input<typeof promotionReadiness> {
  return risk.promotion ? presentCriteria(risk, risk.promotion, now) : presentWithoutCriteria(risk, now)
}

function presentCriteria({ agent }: Risk, criteria: PromotionCriteria, now: bigint) {
  const { trades, minTrades, enteredAt, evaluationPeriod, score, minScore, openPositions } = criteria
  const { drawdownBps, maxDrawdownBps, dayLossUsdc, maxDayLossUsdc } = criteria
  const elapsed = now > enteredAt ? now - enteredAt : 0n
  const meetsMinTrades = trades >= minTrades
  const meetsEvaluationPeriod = elapsed >= evaluationPeriod
  const meetsAlphaScore = score >= minScore
  const isPromotable = agent.status === AgentStatus.Active || agent.status === AgentStatus.Graduated
  const missing: [isMissing: boolean, blocker: string][] = [
    [!isPromotable, 'AgentNotPromotable: the agent is neither active nor graduated'],
    [agent.track >= Track.Prime, 'InvalidTrack: there is no further track'],
    [!meetsMinTrades, `TooFewTrades: ${soFar(trades, minTrades, 'trades')}`],
    [!meetsEvaluationPeriod, `EvaluationPeriodNotOver: ${soFar(elapsed, evaluationPeriod, 'seconds on the track')}`],
    [
      maxDrawdownBps > 0n && drawdownBps > maxDrawdownBps,
      `DrawdownLimitBreached: the worst drawdown was ${drawdownBps} basis points, at most ${maxDrawdownBps} are allowed`,
    ],
    [
      maxDayLossUsdc > 0n && dayLossUsdc >= maxDayLossUsdc,
      `DailyLossLimitBreached: the largest loss of a day was ${dayLossUsdc} USDC base units, less than ${maxDayLossUsdc} are allowed`,
    ],
    [!meetsAlphaScore, `ScoreTooLow: the score is ${score}, ${minScore} is needed`],
    [openPositions > 0n, `OpenPositionsOfOtherMode: close the open positions first (${openPositions})`],
  ]
  const blockers = missing.filter(([isMissing]) => isMissing).map(([, blocker]) => blocker)
  return {
    minTradesRequired: Number(minTrades),
    tradesCompleted: Number(trades),
    meetsMinTrades,
    evaluationPeriodSeconds: `${evaluationPeriod}`,
    evaluationElapsedSeconds: `${elapsed}`,
    meetsEvaluationPeriod,
    promotionScoreRequired: Number(minScore),
    alphaScore: Number(score),
    meetsAlphaScore,
    eligible: blockers.length === 0,
    blockers,
  }
}

/** Presents the readiness in a deployment that computes no score. */
function presentWithoutCriteria({ agent, allocation, trackConfig, trades }: Risk, now: bigint) {
  const { minTrades, evaluationPeriod, promotionScore } = trackConfig
  const since = allocation.createdAt > 0n ? allocation.createdAt : agent.createdAt
  const elapsed = now > since ? now - since : 0n
  const meetsMinTrades = trades >= minTrades
  const meetsEvaluationPeriod = elapsed >= evaluationPeriod
  const blockers = [
    ...(agent.status === AgentStatus.Active ? [] : ['The agent is not active']),
    ...(meetsMinTrades ? [] : [soFar(trades, minTrades, 'trades')]),
    ...(meetsEvaluationPeriod ? [] : [soFar(elapsed, evaluationPeriod, 'seconds on the track')]),
    ...(promotionScore > 0n ? ['The alpha score is not published yet'] : []),
  ]
  return {
    minTradesRequired: Number(minTrades),
    tradesCompleted: Number(trades),
    meetsMinTrades,
    evaluationPeriodSeconds: `${evaluationPeriod}`,
    evaluationElapsedSeconds: `${elapsed}`,
    meetsEvaluationPeriod,
    promotionScoreRequired: Number(promotionScore),
    alphaScore: null,
    meetsAlphaScore: null,
    eligible: blockers.length === 0,
    blockers,
  }
}

const soFar = (done: bigint, needed: bigint, what: string) => `${done} of ${needed} ${what} so far`
