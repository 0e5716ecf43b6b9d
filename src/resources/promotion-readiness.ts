import type { PromotionProgress } from '@agent-trading-service/protocol/promotion-criteria'
import { z } from 'zod'
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

export const presentPromotionReadiness = (progress: PromotionProgress): z.input<typeof promotionReadiness> => ({
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
