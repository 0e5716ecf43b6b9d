// The formulas of docs/leaderboard.md, in integer arithmetic: a ratio is a bigint in billionths, and every division
// truncates towards zero. So the service and a verifier get the same digits.

export const HOUR_SECONDS = 3_600
/** One, in billionths. */
const ONE = 1_000_000_000n
/** With fewer hourly returns, a Sharpe ratio says nothing. */
export const MIN_SHARPE_HOURS = 12
const HOURS_PER_YEAR = 8_760n
/** How many gaps are named, the newest. `gapHours` counts all. */
const MAX_GAPS = 20

/** What a period has added up so far. Ratios are billionths, amounts are USDC base units. */
export type Score = {
  /** The first second of the period. */
  start: number
  /** Unix seconds of the first and the last sample. */
  firstSample: number
  lastSample: number
  /** The hours since the epoch of the first and the last sample. */
  firstHour: number
  lastHour: number
  pnl: bigint
  /** The sum of the hourly returns, and of their squares. */
  sum: bigint
  squares: bigint
  /** The sum of the squares of the negative ones. */
  downside: bigint
  /** The sum of the parts of the cap that were invested at the ends of the hours. */
  exposure: bigint
  /** The highest value of 1 + `sum`, and the deepest fall from such a peak as a part of it. */
  peak: bigint
  drawdown: bigint
  /** Unix seconds of the samples of the peak, and of the peak and the bottom of that fall. */
  peakAt: number
  drawdownFrom: number
  drawdownTo: number
  trades: number
  gapHours: number
  /** The first and last hour of each gap. */
  gaps: [firstHour: number, lastHour: number][]
}

/** One hour of a record, or the part of it up to now. */
type HourlySample = {
  hour: number
  /** Unix seconds from which the hour is measured: its first second, or the first trade of the record. */
  from: number
  /** Unix seconds at which it was valued; the last trade if nothing is held. */
  at: number
  pnl: bigint
  /** What the held tokens were worth. */
  value: bigint
  /** The allocation cap; 0 if there is none. */
  cap: bigint
  trades: number
  /** Whether a price was missing or too old. */
  isGap: boolean
}

export const openScore = (start: number, { hour, from }: HourlySample): Score => ({
  start,
  firstSample: from,
  lastSample: from,
  firstHour: hour,
  lastHour: hour,
  pnl: 0n,
  sum: 0n,
  squares: 0n,
  downside: 0n,
  exposure: 0n,
  peak: ONE,
  drawdown: 0n,
  peakAt: from,
  drawdownFrom: from,
  drawdownTo: from,
  trades: 0,
  gapHours: 0,
  gaps: [],
})

/** Returns a score with one more hour. */
export function addHour(score: Score, { hour, at, pnl, value, cap, trades, isGap }: HourlySample): Score {
  const hourlyReturn = cap === 0n ? 0n : (pnl * ONE) / cap
  const sum = score.sum + hourlyReturn
  const index = ONE + sum
  const [peak, peakAt] = index > score.peak ? [index, at] : [score.peak, score.peakAt]
  const fall = ((peak - index) * ONE) / peak
  return {
    ...score,
    lastHour: hour,
    lastSample: at,
    pnl: score.pnl + pnl,
    sum,
    squares: score.squares + hourlyReturn * hourlyReturn,
    downside: score.downside + (hourlyReturn < 0n ? hourlyReturn * hourlyReturn : 0n),
    exposure: score.exposure + (cap === 0n ? 0n : (value * ONE) / cap),
    peak,
    peakAt,
    ...(fall > score.drawdown && { drawdown: fall, drawdownFrom: peakAt, drawdownTo: at }),
    trades: score.trades + trades,
    gapHours: score.gapHours + (isGap ? 1 : 0),
    gaps: isGap ? addGap(score.gaps, hour) : score.gaps,
  }
}

function addGap(gaps: Score['gaps'], hour: number): Score['gaps'] {
  const last = gaps.at(-1)
  if (last?.[1] === hour - 1) return [...gaps.slice(0, -1), [last[0], hour]]
  return [...gaps, [hour, hour] as [number, number]].slice(-MAX_GAPS)
}

/** The published figures of a score. */
export type Figures = {
  /** Parts per million. */
  returnPpm: number
  drawdownPpm: number
  /** Thousandths; null if there was no drawdown. */
  calmarMilli: number | null
  /** Thousandths, annualized; null with fewer than MIN_SHARPE_HOURS hours, or if all hours were equal. */
  sharpeMilli: number | null
}

export function figuresOf({ sum, squares, drawdown, firstHour, lastHour }: Score): Figures {
  return {
    returnPpm: toSafeNumber(sum / 1_000n),
    drawdownPpm: toSafeNumber(drawdown / 1_000n),
    calmarMilli: drawdown === 0n ? null : toSafeNumber((sum * 1_000n) / drawdown),
    sharpeMilli: sharpeOf(sum, squares, BigInt(lastHour - firstHour + 1)),
  }
}

/** What a score says in addition about one agent. */
export function statisticsOf(score: Score | undefined) {
  const hours = score === undefined ? 0 : score.lastHour - score.firstHour + 1
  const { returnPpm = 0, drawdownPpm = 0, sharpeMilli = null } = score ? figuresOf(score) : {}
  return {
    returnPpm,
    maxDrawdown:
      score === undefined || drawdownPpm === 0
        ? null
        : { ppm: drawdownPpm, from: `${score.drawdownFrom}`, to: `${score.drawdownTo}` },
    sharpeMilli,
    sortinoMilli: score === undefined ? null : sortinoOf(score.sum, score.downside, BigInt(hours)),
    exposurePpm: score === undefined ? 0 : toSafeNumber(score.exposure / (BigInt(hours) * 1_000n)),
    hours,
    gapHours: score?.gapHours ?? 0,
  }
}

/**
 * Returns mean / downside deviation × √8760 of n hourly returns, from their sum and the sum of the squares of negative
 * ones.
 */
function sortinoOf(sum: bigint, downside: bigint, hours: bigint): number | null {
  if (hours < MIN_SHARPE_HOURS || downside === 0n) return null
  const root = integerRoot((sum * sum * HOURS_PER_YEAR * 1_000_000n) / (hours * downside))
  return toSafeNumber(sum < 0n ? -root : root)
}

/** Returns mean / standard deviation × √8760 of n hourly returns, from their sum and the sum of their squares. */
function sharpeOf(sum: bigint, squares: bigint, hours: bigint): number | null {
  const spread = hours * squares - sum * sum
  if (hours < MIN_SHARPE_HOURS || spread <= 0n) return null
  const root = integerRoot((sum * sum * HOURS_PER_YEAR * (hours - 1n) * 1_000_000n) / (hours * spread))
  return toSafeNumber(sum < 0n ? -root : root)
}

/** Returns the square root, rounded down (Newton's method). */
export function integerRoot(value: bigint): bigint {
  if (value < 2n) return value
  let root = 1n << BigInt(Math.ceil(value.toString(2).length / 2))
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

/** A figure beyond this has no meaning left, and JSON numbers end there. */
const MAX_FIGURE = BigInt(Number.MAX_SAFE_INTEGER) - 1n

/** Returns a figure as a JSON number. */
export const toSafeNumber = (value: bigint): number =>
  Number(value > MAX_FIGURE ? MAX_FIGURE : value < -MAX_FIGURE ? -MAX_FIGURE : value)
