import type { z } from 'zod'
import { type Call, chargeBeforeReading } from '../call.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import type { EquityPoint } from '../history/read-equity.ts'
import { intervalCount, type TimeRange } from '../history/time-range.ts'
import { invalidField } from '../resources/invalid-request.ts'
import { presentAsOf } from '../resources/primitives.ts'
import {
  equityHistory,
  type equityPoint,
  equityQuery,
  INTERVALS,
  type Interval,
  MAX_POINTS,
} from '../resources/time-series.ts'
import { defineOperation } from './define-operation.ts'

export const getEquityHistory = defineOperation(
  {
    id: 'getEquityHistory',
    tool: {
      name: 'svc_get_equity_history',
      set: 'history',
      description: 'Returns equity, PnL and drawdown of an agent over time. Example: {"agentId":"1","interval":"1d"}',
    },
    path: '/agents/{agentId}/equity-history',
    tag: 'Positions',
    summary: 'Get equity over time',
    description:
      'Returns equity, PnL and drawdown at the end of each 5 minutes, hour or day (UTC) from the registration on, computed from trades, caps and posted prices. The last point is at the newest block and equals the risk state of that block. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the points as CSV.',
    query: equityQuery,
    csv: 'points',
    output: equityHistory,
  },
  async ({ trading, history }: HistoryContext, { agentId, ...requested }, call) => {
    const { points, opening, asOf, lagBlocks } = await history.equity(trading, agentId, now =>
      countedTimeRange(call, requested, now),
    )
    return {
      agentId: `${agentId}`,
      points: points.map(presentEquity),
      opening: opening ? presentEquity(opening) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

// There may be 1,000 points, so they are written out: `present` costs three times as much.
const presentEquity = (point: EquityPoint): z.input<typeof equityPoint> => ({
  timestamp: `${point.timestamp}`,
  blockNumber: `${point.blockNumber}`,
  equityUsdc: `${point.equity}`,
  realizedPnlUsdc: `${point.realized}`,
  unrealizedPnlUsdc: `${point.unrealized}`,
  drawdownBps: point.drawdownBps,
  openCount: point.openCount,
  priceStale: point.isStale,
})

/** A requested range; the bounds are Unix seconds. */
type RequestedRange = { interval: Interval; from?: number | undefined; to?: number | undefined }

/** One less than the hours of a week, because the interval of `to` counts too. */
const DEFAULT_INTERVALS = 167

/** Each point is computed from trades and prices: as many cost as much as a read of something else. */
const POINTS_PER_READ = 5

/**
 * Returns a requested range with its defaults filled in, and counts its points as reads of the client; `now` is the
 * time of the newest block. Throws INVALID_REQUEST, TOO_MANY_POINTS or RATE_LIMITED.
 */
export async function countedTimeRange(call: Call, requested: RequestedRange, now: bigint): Promise<TimeRange> {
  const range = parseTimeRange(requested, now)
  await chargeBeforeReading(call, Math.floor(intervalCount(range) / POINTS_PER_READ))
  return range
}

function parseTimeRange({ interval, ...requested }: RequestedRange, now: bigint): TimeRange {
  const intervalSeconds = INTERVALS[interval]
  const to = requested.to ?? Number(now)
  const from = requested.from ?? Math.max(0, to - DEFAULT_INTERVALS * intervalSeconds)
  if (from > to) throw invalidField('from', `${from} is after to, ${to}`, from)
  const points = intervalCount({ from, to, intervalSeconds })
  if (points > MAX_POINTS) throw refuse('TOO_MANY_POINTS', { from, to, interval, points, limit: MAX_POINTS })
  return { from, to, intervalSeconds }
}
