import { refuse } from '../errors/refuse.ts'
import { intervalCount, type TimeRange } from '../history/read-time-series.ts'
import { INTERVALS, type Interval, MAX_POINTS } from '../resources/time-series.ts'
import { invalidRequest } from './invalid-request.ts'

/** A requested range; the bounds are Unix seconds. */
type RequestedRange = { interval: Interval; from?: number | undefined; to?: number | undefined }

/** One less than the hours of a week, because the interval of `to` counts too. */
const DEFAULT_INTERVALS = 167

/**
 * Returns a requested range with its defaults filled in; `now` is the time of the newest block. Throws INVALID_REQUEST
 * or TOO_MANY_POINTS.
 */
export function parseTimeRange({ interval, ...requested }: RequestedRange, now: bigint): TimeRange {
  const intervalSeconds = INTERVALS[interval]
  const to = requested.to ?? Number(now)
  const from = requested.from ?? Math.max(0, to - DEFAULT_INTERVALS * intervalSeconds)
  if (from > to)
    throw invalidRequest([{ path: ['from'], message: `${from} is after to, ${to}` }], { given: { from }, fields: {} })
  const points = intervalCount({ from, to, intervalSeconds })
  if (points > MAX_POINTS) throw refuse('TOO_MANY_POINTS', { from, to, interval, points, limit: MAX_POINTS })
  return { from, to, intervalSeconds }
}
