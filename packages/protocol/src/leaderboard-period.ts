/** The periods of the leaderboard, all in UTC: a day, a week from Monday, a month, and all time. */
export const PERIODS = ['day', 'week', 'month', 'all'] as const
export type Period = (typeof PERIODS)[number]

const DAY_SECONDS = 86_400
const WEEK_SECONDS = 7 * DAY_SECONDS
/** 1970-01-05, a Monday. */
const FIRST_MONDAY = 4 * DAY_SECONDS

/** Returns the first second of the period that a time in Unix seconds is in; 0 for `all`. */
export function periodStart(period: Period, time: number): number {
  switch (period) {
    case 'day':
      return time - (time % DAY_SECONDS)
    case 'week':
      return time - ((time - FIRST_MONDAY + WEEK_SECONDS) % WEEK_SECONDS)
    case 'month':
      return monthStart(time, 0)
    case 'all':
      return 0
  }
}

/** Returns the first second after a period; undefined for `all`. */
export function periodEnd(period: Period, start: number): number | undefined {
  switch (period) {
    case 'day':
      return start + DAY_SECONDS
    case 'week':
      return start + WEEK_SECONDS
    case 'month':
      return monthStart(start, 1)
    case 'all':
      return undefined
  }
}

function monthStart(time: number, offset: number): number {
  const date = new Date(time * 1_000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset) / 1_000
}
