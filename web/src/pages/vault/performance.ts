/** The price of one share in USDC base units; `time` is in Unix seconds. */
export type PricePoint = { time: number; price: bigint }

const DAY_SECONDS = 86_400
const YEAR_SECONDS = 365 * DAY_SECONDS
/** A shorter time would say little about a year. */
const MIN_AGE_FOR_YEAR = 7 * DAY_SECONDS

const changeBps = (from: bigint, to: bigint): number | undefined =>
  from === 0n ? undefined : Number(((to - from) * 10_000n) / from)

/** Returns the change of the price since a time; undefined if the series began later. The points are in time order. */
export function returnOver(points: readonly PricePoint[], since: number): number | undefined {
  const [start, end] = [points.findLast(({ time }) => time <= since), points.at(-1)]
  return start && end && changeBps(start.price, end.price)
}

/** Returns the change of the whole series, scaled to a year if it is a week long, and its deepest fall; basis points. */
export function performanceOf(points: readonly PricePoint[], now: number) {
  const [first, last] = [points[0], points.at(-1)]
  const totalBps = first && last && changeBps(first.price, last.price)
  const age = now - (first?.time ?? now)
  let peak = 0n
  let drawdownBps = 0
  for (const { price } of points) {
    if (price > peak) peak = price
    drawdownBps = Math.max(drawdownBps, -(changeBps(peak, price) ?? 0))
  }
  const apyBps =
    totalBps !== undefined && age >= MIN_AGE_FOR_YEAR
      ? Math.round(((1 + totalBps / 10_000) ** (YEAR_SECONDS / age) - 1) * 10_000)
      : undefined
  return { totalBps, apyBps, drawdownBps }
}
