import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { MIN_SHARPE_HOURS } from '@agent-trading-service/protocol/leaderboard-formulas'
import { PERIODS, periodEnd } from '@agent-trading-service/protocol/leaderboard-period'
import { ORDERINGS } from '@agent-trading-service/protocol/standing-figures'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { getAgentNames } from '../chain/agents.ts'
import { vaultAddress } from '../chain/find-vault.ts'
import { readTree } from '../chain/read-tree.ts'
import type { HistoryContext } from '../history/client.ts'
import { KEPT_LEADERBOARD_DAYS, oldestKeptDay } from '../history/delete-old-rows.ts'
import type { LeaderboardCursor, RankedStanding } from '../history/read-leaderboard.ts'
import { agentQuery, agentRecord, nameOf, TRACKS } from '../resources/agent.ts'
import { invalidField } from '../resources/invalid-request.ts'
import { present } from '../resources/present.ts'
import {
  addressOut,
  asOf,
  digits,
  digitsAsNumber,
  lagBlocks,
  nextCursor,
  pageLimit,
  presentAsOf,
  unixSeconds,
  unixSecondsIn,
  usdc,
} from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

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
    vault: addressOut.describe('Contract address of the vault'),
    track: agentRecord.shape.track,
    trackName: agentRecord.shape.trackName,
    capital: z.enum(CAPITALS).describe('Which positions of the agent count'),
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

const leaderboardQuery = z.object({
  period: z.enum(PERIODS).default('week').meta({
    description: 'UTC day, week from Monday, calendar month, or all time',
    example: 'week',
  }),
  at: unixSecondsIn.optional().describe('A time in the period, in Unix seconds; default: now'),
  vault: agentQuery.shape.vault,
  track: agentQuery.shape.track,
  capital: z.enum(CAPITALS).optional().describe('Default: both, as separate entries'),
  sort: z.enum(ORDERINGS).default('return'),
  minTrades: digitsAsNumber(z.int().min(0).max(MAX_MIN_TRADES))
    .default(DEFAULT_MIN_TRADES)
    .describe('Leaves out agents with fewer trades in the period'),
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
    .describe('nextCursor of the previous page; valid for two hours'),
})

export const getLeaderboard = defineOperation(
  {
    id: 'getLeaderboard',
    tool: {
      name: 'svc_get_leaderboard',
      set: 'leaderboard',
      description:
        'Ranks agents by return, drawdown, calmar or sharpe in a day, week, month or all time; filter by vault, track, capital and minTrades. Example: {"period":"week","sort":"calmar"}',
    },
    path: '/leaderboard',
    tag: 'Positions',
    summary: 'Rank agents by their track records',
    description:
      'Ranks agents in a UTC day, week (from Monday), month, or in all time. Every figure follows from the logs of the chain: PnL is sales less purchases plus holdings at the last oracle price, valued at the end of each hour and now; an hourly return is its change divided by the allocation cap. `return` is the sum of the hourly returns, `drawdown` the deepest fall of 1 + that sum, `calmar` the first divided by the second, `sharpe` mean / standard deviation × √8760. All in integers, rounded towards zero; ties go to the lower agentId, and an agent without the figure comes last. `ats verify leaderboard` recomputes it; docs/leaderboard.md has the formulas. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the entries as CSV, with the next page in the `Link` header.',
    query: leaderboardQuery,
    csv: 'entries',
    units: 10,
    output: leaderboard,
  },
  async ({ trading, history, readCache }: HistoryContext, query, call) => {
    const { period, sort, minTrades, capital, vault, cursor, ...filters } = query
    const read = async () => {
      const [{ block: head }, vaultFilter] = await Promise.all([
        readTree(trading, []),
        vault === undefined ? undefined : vaultAddress(trading, vault),
      ])
      if (period === 'day' && filters.at !== undefined && filters.at < oldestKeptDay(Number(head.timestamp)))
        throw invalidField(
          'at',
          `is more than ${KEPT_LEADERBOARD_DAYS} days ago; of older times, request the week, the month or all`,
          filters.at,
        )
      const page = await history.leaderboard(
        {
          ...filters,
          period,
          minTrades,
          cursor,
          ordering: sort,
          vault: vaultFilter,
          capitalMode: capitalModeOf(capital),
        },
        head,
      )
      if (page === undefined) throw invalidField('cursor', 'has expired; read the list from its first page', cursor)
      const { start, standings, next, asOf, lagBlocks, recordsRead } = page
      await chargeRowsRead(call, recordsRead)
      const names = await getAgentNames(
        trading,
        standings.map(({ agentId }) => agentId),
      )
      return {
        chainId: trading.id,
        period,
        periodStart: `${start}`,
        periodEnd: `${periodEnd(period, start) ?? ''}` || null,
        sort,
        minTrades,
        entries: standings.map(standing => presentStanding(standing, names.get(`${standing.agentId}`) ?? '')),
        nextCursor: next ? presentLeaderboardCursor(next) : null,
        asOf: presentAsOf(asOf),
        lagBlocks,
      }
    }
    // Relays clear the cache, and concurrent requests share one read.
    return readCache.getOrRead(`leaderboard ${JSON.stringify(query)}`, read)
  },
)

export const capitalModeOf = (capital: Capital | undefined): number | undefined => {
  if (capital === undefined) return undefined
  return capital === 'real' ? CapitalMode.Real : CapitalMode.Simulated
}

const presentLeaderboardCursor = (cursor: LeaderboardCursor): string => {
  const { block, time, start, value, agentId, capitalMode, rank } = cursor
  return ['l', block, time, start, value, agentId, capitalMode, rank].join('.')
}

function parseLeaderboardCursor(text: string): LeaderboardCursor | undefined {
  if (!/^l(\.(0|-?[1-9]\d{0,15})){7}$/.test(text)) return undefined
  const [block, time, start, value, agentId, capitalMode, rank] = text.slice(2).split('.').map(Number)
  const numbers = { block, time, start, value, agentId, capitalMode, rank }
  return Object.values(numbers).every(Number.isSafeInteger) ? (numbers as LeaderboardCursor) : undefined
}

const presentStanding = (standing: RankedStanding, name: string): z.input<typeof leaderboardEntry> =>
  present(leaderboardEntry, {
    ...standing,
    ...standing.figures,
    name,
    trackName: nameOf(TRACKS, standing.track),
    capital: standing.capitalMode === CapitalMode.Real ? 'real' : 'simulated',
    pnlUsdc: standing.figures.pnl,
    sampleBlock: standing.block,
    gaps: standing.figures.gaps.map(([from, to]) => `${from}/${to}`),
  })
