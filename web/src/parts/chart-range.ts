export const DAY_SECONDS = 86_400

/** The periods of a chart: what a button says, its name, and its length in seconds. */
export const RANGES = [
  ['1 D', 'One day', DAY_SECONDS],
  ['1 W', 'One week', 7 * DAY_SECONDS],
  ['1 M', 'One month', 30 * DAY_SECONDS],
  ['All', 'All', Number.POSITIVE_INFINITY],
] as const

/** At the service's limit of 1,000 points. */
const MAX_DAYS = 999

const dayOf = (seconds: number) => Math.floor(seconds / DAY_SECONDS) * DAY_SECONDS

/**
 * Returns the query of a time series that covers a period and began at `start`; in Unix seconds. It stays the same for
 * as long as possible, because another query shows another series.
 */
export function seriesQuery(
  period: number,
  start: number,
  now: number,
): { interval: '5m' | '1h' | '1d'; from?: string } {
  const age = now - start
  if (period < age)
    return period <= 7 * DAY_SECONDS ? { interval: '1h' } : { interval: '1h', from: `${dayOf(now - period)}` }
  if (age <= DAY_SECONDS) return { interval: '5m', from: `${start}` }
  if (age <= 30 * DAY_SECONDS) return { interval: '1h', from: `${start}` }
  return { interval: '1d', from: `${Math.max(start, dayOf(now) - MAX_DAYS * DAY_SECONDS)}` }
}

/** The same for a series without points between the hours. */
export function hourlyQuery(period: number, start: number, now: number): { interval: '1h' | '1d'; from?: string } {
  const { interval, ...query } = seriesQuery(period, start, now)
  return { ...query, interval: interval === '5m' ? '1h' : interval }
}
