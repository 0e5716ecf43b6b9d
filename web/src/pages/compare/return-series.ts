/** A point of an agent's equity, as the service returns it. */
type EquityPoint = {
  timestamp: string
  equityUsdc: string
  realizedPnlUsdc: string
  unrealizedPnlUsdc: string
}

/** A return at a time (Unix seconds), in basis points since the first point. */
export type ReturnPoint = { time: number; value: number }

/**
 * Returns the sum of the changes of PnL, each on the allocation cap of its time, as the leaderboard adds them up. A
 * promotion changes the cap and starts another track record, so the results before it are no longer part of the equity.
 */
export function returnsOf(points: readonly EquityPoint[]): ReturnPoint[] {
  const series: ReturnPoint[] = []
  let sum = 0
  let earlier = 0
  let previous: { pnl: number; rest: number } | undefined
  for (const { timestamp, ...point } of points) {
    const [equity, realized, unrealized] = [
      Number(point.equityUsdc),
      Number(point.realizedPnlUsdc),
      Number(point.unrealizedPnlUsdc),
    ]
    const pnl = realized + unrealized
    const rest = equity - pnl
    if (previous && rest !== previous.rest) earlier = realized
    const cap = rest + earlier
    if (previous && cap > 0) sum += ((pnl - previous.pnl) * 10_000) / cap
    series.push({ time: Number(timestamp), value: sum })
    previous = { pnl, rest }
  }
  return series
}

/**
 * Puts series on the same times. All end at the newest time of any, because the last point of each is now. Before its
 * first point a series has no value.
 */
export function alignSeries(series: readonly ReturnPoint[][]): { times: number[]; values: (number | undefined)[][] } {
  const now = Math.max(...series.map(points => points.at(-1)?.time ?? 0))
  const ending = series.map(points =>
    points.map((point, index) => (index === points.length - 1 ? { ...point, time: now } : point)),
  )
  const times = [...new Set(ending.flatMap(points => points.map(({ time }) => time)))].sort((a, b) => a - b)
  return {
    times,
    values: ending.map(points => {
      let next = 0
      return times.map(time => {
        while (points[next] !== undefined && (points[next]?.time ?? 0) <= time) next++
        return points[next - 1]?.value
      })
    }),
  }
}
