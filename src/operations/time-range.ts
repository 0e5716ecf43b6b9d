import { refuse } from '../errors/catalogue.ts'
import { MOST_POINTS, pointsOf, type Range } from '../history/time-series.ts'
import { INTERVALS, type Interval } from '../resources/time-series.ts'
import { invalidRequest } from './define-operation.ts'

type Asked = { interval: Interval; from?: number | undefined; to?: number | undefined }

/** Full ones before the last: a week of hours. */
const DEFAULT_INTERVALS = 167

/** The range that is asked for, by the time of the newest block. Throws INVALID_REQUEST or TOO_MANY_POINTS. */
export function toRange({ interval, from: begin, to: end }: Asked, now: bigint): Range {
  const seconds = INTERVALS[interval]
  const to = end ?? Number(now)
  const from = begin ?? Math.max(0, to - DEFAULT_INTERVALS * seconds)
  if (from > to) throw invalidRequest([{ path: ['from'], message: `${from} is after to, ${to}` }])
  const points = pointsOf({ from, to, seconds })
  if (points > MOST_POINTS) throw refuse('TOO_MANY_POINTS', { from, to, interval, points, limit: MOST_POINTS })
  return { from, to, seconds }
}
