import type { Block } from '../chain/configured-chain.ts'
import { onOneBranch } from './read-snapshot.ts'

/**
 * A range of a time series, in Unix seconds, with the length of its intervals. A point is at the end of an interval.
 */
export type TimeRange = { from: number; to: number; intervalSeconds: number }

export const intervalCount = ({ from, to, intervalSeconds }: TimeRange): number =>
  Math.floor(to / intervalSeconds) - Math.floor(from / intervalSeconds) + 1

/** Returns the last second of the interval that has a time. */
const endOf = ({ intervalSeconds }: Pick<TimeRange, 'intervalSeconds'>, time: number): number =>
  (Math.floor(time / intervalSeconds) + 1) * intervalSeconds - 1

/** Returns the last second of each interval that ends within a range. */
export function endsOf(range: TimeRange): number[] {
  const { from, to, intervalSeconds } = range
  const first = endOf(range, from)
  const count = Math.max(0, Math.floor((to - first) / intervalSeconds) + 1)
  return Array.from({ length: count }, (_, index) => first + index * intervalSeconds)
}

/** The point at `block`, from the chain's own figures, and the block and time up to which the index has everything. */
type NewestPoint<Point> = { point: Point; block: Block; indexed: Block; reached: number; lagBlocks: number }

/**
 * Reads the points at the ends of a range's intervals, oldest first, and the one at the end of the interval before it.
 * The last point is the newest one if its block is in the range; `asOf` is earlier than that if the index is behind.
 * Throws HISTORY_UNAVAILABLE.
 */
export async function readTimeSeries<Point extends { timestamp: bigint }>(
  db: D1Database,
  range: TimeRange,
  { point, block, indexed, reached, lagBlocks }: NewestPoint<Point>,
  readPoints: (times: readonly number[]) => Promise<Point[]>,
) {
  const now = Number(block.timestamp)
  const ends = endsOf(range).filter(end => end < now && end < reached)
  const before = endOf(range, range.from) - range.intervalSeconds
  const times = before < reached ? [before, ...ends] : ends
  const found = await onOneBranch(db, () => readPoints(times))
  const opening = found.find(({ timestamp }) => timestamp === BigInt(before))
  const points = found.filter(each => each !== opening)
  if (now >= range.from && now <= range.to) points.push(point)
  return { points, opening, asOf: lagBlocks > 0 ? indexed : block, lagBlocks }
}
