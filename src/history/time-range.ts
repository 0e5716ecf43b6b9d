import type { Block } from '../chain/configured-chain.ts'

/** A range of a time series, in Unix seconds, with the length of its intervals. A point is at the end of an interval. */
export type TimeRange = { from: number; to: number; intervalSeconds: number }

/**
 * The points of a range, oldest first, and the one at the end of the interval before it. The last point is at `asOf` if that is
 * in the range.
 */
export type TimeSeries<Point> = { points: Point[]; opening: Point | undefined; asOf: Block; lagBlocks: number }

/** Returns the number of intervals of a range. */
export const intervalCount = ({ from, to, intervalSeconds }: TimeRange): number =>
  Math.floor(to / intervalSeconds) - Math.floor(from / intervalSeconds) + 1

/** Returns the last second of the interval that has a time. */
export const endOf = ({ intervalSeconds }: Pick<TimeRange, 'intervalSeconds'>, time: number): number =>
  (Math.floor(time / intervalSeconds) + 1) * intervalSeconds - 1

/** Returns the last second of each interval that ends within a range. */
export function endsOf(range: TimeRange): number[] {
  const { from, to, intervalSeconds } = range
  const first = endOf(range, from)
  const count = Math.max(0, Math.floor((to - first) / intervalSeconds) + 1)
  return Array.from({ length: count }, (_, index) => first + index * intervalSeconds)
}
