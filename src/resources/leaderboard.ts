import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { MIN_SHARPE_HOURS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { PERIODS } from '@agent-trading-service/protocol/leaderboard-period'
import { ORDERINGS } from '@agent-trading-service/protocol/standing-figures'
import { z } from 'zod'
import type { LeaderboardCursor, RankedStanding } from '../history/read-leaderboard.ts'
import { agentQuery, agentRecord, nameOf, TRACKS } from './agent.ts'
import { addressOut, asOf, digits, lagBlocks, nextCursor, pageLimit, unixSeconds, usdc } from './primitives.ts'

export const CAPITALS = ['real', 'simulated'] as const
export type Capital = (typeof CAPITALS)[number]

const DEFAULT_MIN_TRADES = 1
const MAX_MIN_TRADES = 10_000

const ppm = (description: string) =>
  z.int().meta({ description: `${description}; parts per million, 10000 = 1 %`, example: 12_500 })
const milli = (description: string) => z.int().meta({ description: `${description}; thousandths`, example: 1_250 })

const leaderboardEntry = z
  .object({
    rank: z.int().meta({ description: 'Place in this list, from 1', example: 1 }),
    agentId: digits('Agent id'),
    name: agentRecord.shape.name,
    owner: addressOut,
    agentsOfOwner: z.int().meta({
      description: 'How many agents the owner has; with more than 1, other entries may belong to the same owner',
      example: 1,
    }),
    vault: addressOut.meta({ description: 'Contract address of the vault' }),
    track: agentRecord.shape.track,
    trackName: agentRecord.shape.trackName,
    capital: z.enum(CAPITALS).meta({ description: 'Which positions of the agent count' }),
    pnlUsdc: usdc('Realized and unrealized PnL of the period'),
    returnPpm: ppm('Sum of the hourly returns, each on the allocation cap of its time'),
    drawdownPpm: ppm('Deepest fall of the sampled equity from an earlier peak of the period'),
    calmarMilli: milli('Return divided by drawdown; null without a drawdown').nullable(),
    sharpeMilli: milli(
      `Mean of the hourly returns divided by their standard deviation, times √8760; null with fewer than ${MIN_SHARPE_HOURS} hours, or without a deviation`,
    ).nullable(),
    trades: z.int().meta({ description: 'Purchases and sales in the period', example: 4 }),
    hours: z.int().meta({ description: 'Hours from the first to the last sample', example: 36 }),
    firstSample: unixSeconds('First sample of the period'),
    lastSample: unixSeconds('Last sample of the period'),
    sampleBlock: digits('The block as of which the figures were computed'),
    gapHours: z.int().meta({
      description: 'Hours in which a held token had no price of the last hour; it counts at its last price',
      example: 0,
    }),
    gaps: z.array(z.string()).meta({
      description: 'The newest 20 of these gaps, oldest first, as from/to in Unix seconds',
      example: ['1753833600/1753840800'],
    }),
  })
  .meta({ id: 'LeaderboardEntry' })

export const leaderboard = z
  .object({
    chainId: z.int(),
    period: z.enum(PERIODS),
    periodStart: unixSeconds('First second of the period; 0 for all'),
    periodEnd: unixSeconds('First second after the period; null for all').nullable(),
    sort: z.enum(ORDERINGS),
    minTrades: z.int(),
    entries: z.array(leaderboardEntry),
    nextCursor,
    asOf,
    lagBlocks,
  })
  .meta({ id: 'Leaderboard' })

export const leaderboardQuery = z.object({
  period: z.enum(PERIODS).default('week').meta({
    description: 'UTC day, week from Monday, calendar month, or all time',
    example: 'week',
  }),
  at: z
    .string()
    .regex(/^[0-9]{1,10}$/, 'must be Unix seconds')
    .transform(Number)
    .optional()
    .meta({ description: 'A time in the period, in Unix seconds; default: now' }),
  vault: agentQuery.shape.vault,
  track: agentQuery.shape.track,
  capital: z.enum(CAPITALS).optional().meta({ description: 'Default: both, as separate entries' }),
  sort: z.enum(ORDERINGS).default('return'),
  minTrades: z.coerce.number<string | number>().int().min(0).max(MAX_MIN_TRADES).default(DEFAULT_MIN_TRADES).meta({
    description: 'Leaves out agents with fewer trades in the period',
  }),
  limit: pageLimit,
  cursor: z
    .string()
    .transform((text, ctx): LeaderboardCursor => {
      const cursor = parseLeaderboardCursor(text)
      if (cursor !== undefined) return cursor
      ctx.addIssue({ code: 'custom', message: 'is not a nextCursor of a response' })
      return z.NEVER
    })
    .optional()
    .meta({ description: 'nextCursor of the previous page; valid for 1,000 blocks' }),
})

export const capitalModeOf = (capital: Capital | undefined): number | undefined => {
  if (capital === undefined) return undefined
  return capital === 'real' ? CapitalMode.Real : CapitalMode.Simulated
}

export const presentLeaderboardCursor = (cursor: LeaderboardCursor): string => {
  const { block, start, value, agentId, capitalMode, rank } = cursor
  return ['l', block, start, value, agentId, capitalMode, rank].join('.')
}

function parseLeaderboardCursor(text: string): LeaderboardCursor | undefined {
  if (!/^l(\.(0|-?[1-9]\d{0,15})){6}$/.test(text)) return undefined
  const [block, start, value, agentId, capitalMode, rank] = text.slice(2).split('.').map(Number)
  const numbers = { block, start, value, agentId, capitalMode, rank }
  return Object.values(numbers).every(Number.isSafeInteger) ? (numbers as LeaderboardCursor) : undefined
}

export const presentStanding = (standing: RankedStanding, name: string): z.input<typeof leaderboardEntry> => {
  const { figures } = standing
  return {
    rank: standing.rank,
    agentId: `${standing.agentId}`,
    name,
    owner: standing.owner,
    agentsOfOwner: standing.agentsOfOwner,
    vault: standing.vault,
    track: standing.track,
    trackName: nameOf(TRACKS, standing.track),
    capital: standing.capitalMode === CapitalMode.Real ? 'real' : 'simulated',
    pnlUsdc: figures.pnl,
    returnPpm: figures.returnPpm,
    drawdownPpm: figures.drawdownPpm,
    calmarMilli: figures.calmarMilli,
    sharpeMilli: figures.sharpeMilli,
    trades: figures.trades,
    hours: figures.hours,
    firstSample: `${figures.firstSample}`,
    lastSample: `${figures.lastSample}`,
    sampleBlock: `${standing.block}`,
    gapHours: figures.gapHours,
    gaps: figures.gaps.map(([from, to]) => `${from}/${to}`),
  }
}
