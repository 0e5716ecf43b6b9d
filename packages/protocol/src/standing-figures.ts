import { type Figures, figuresOf, HOUR_SECONDS, type Score } from './leaderboard-formulas.ts'

/** The published figures of an agent in one period and capital mode; times are Unix seconds. */
export type StandingFigures = Figures & {
  /** USDC base units. */
  pnl: string
  trades: number
  hours: number
  firstSample: number
  lastSample: number
  gapHours: number
  /** First second of the first hour, and first second after the last one. */
  gaps: [from: number, to: number][]
}

/** Returns the published figures of a score. */
export const standingFiguresOf = (score: Score): StandingFigures => ({
  ...figuresOf(score),
  pnl: `${score.pnl}`,
  trades: score.trades,
  hours: score.lastHour - score.firstHour + 1,
  firstSample: score.firstSample,
  lastSample: score.lastSample,
  gapHours: score.gapHours,
  gaps: score.gaps.map(([first, last]) => [first * HOUR_SECONDS, (last + 1) * HOUR_SECONDS]),
})

const LAST = Number.MAX_SAFE_INTEGER

/** What each order of the leaderboard sorts by, ascending from the best. An agent without the figure comes last. */
export const orderings = {
  return: ({ returnPpm }: Figures) => -returnPpm,
  drawdown: ({ drawdownPpm }: Figures) => drawdownPpm,
  calmar: ({ calmarMilli }: Figures) => (calmarMilli === null ? LAST : -calmarMilli),
  sharpe: ({ sharpeMilli }: Figures) => (sharpeMilli === null ? LAST : -sharpeMilli),
} as const
export type Ordering = keyof typeof orderings
export const ORDERINGS = Object.keys(orderings) as [Ordering, ...Ordering[]]
