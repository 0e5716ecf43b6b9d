const DAY_SECONDS = 86_400
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]

/** What was realized on a UTC day; `day` is its first second. */
type DayPnl = { day: string; realizedPnlUsdc: string }
/** A day of a month; `pnl` is undefined without a sale. */
export type CalendarDay = { date: number; pnl: string | undefined }
/** A month as weeks from Monday; days of other months are undefined. `sum` is what was realized in it. */
export type CalendarMonth = { name: string; weeks: (CalendarDay | undefined)[][]; sum: string }

/** A month as its number since the year 0. */
export const monthOf = (seconds: number): number => {
  const date = new Date(seconds * 1000)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** Returns a month, in UTC, with what was realized on each of its days. */
export function calendarMonth(month: number, days: readonly DayPnl[]): CalendarMonth {
  const [year, index] = [Math.floor(month / 12), month % 12]
  const first = Date.UTC(year, index, 1) / 1000
  const length = Math.round((Date.UTC(year, index + 1, 1) / 1000 - first) / DAY_SECONDS)
  const byDay = new Map(days.map(({ day, realizedPnlUsdc }) => [Number(day), realizedPnlUsdc]))
  const cells: (CalendarDay | undefined)[] = Array.from({ length: (new Date(first * 1000).getUTCDay() + 6) % 7 })
  let sum = 0n
  for (let date = 1; date <= length; date++) {
    const pnl = byDay.get(first + (date - 1) * DAY_SECONDS)
    sum += BigInt(pnl ?? 0)
    cells.push({ date, pnl })
  }
  while (cells.length % 7 !== 0) cells.push(undefined)
  const weeks = Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7))
  return { name: `${MONTHS[index]} ${year}`, weeks, sum: `${sum}` }
}

/** Returns how strongly to color a day, from 1 to 3, by the largest gain or loss of any day. */
export function strengthOf(pnl: string, days: readonly DayPnl[]): 1 | 2 | 3 {
  const size = (value: string) => Math.abs(Number(value))
  const largest = Math.max(1, ...days.map(({ realizedPnlUsdc }) => size(realizedPnlUsdc)))
  const share = size(pnl) / largest
  return share > 0.5 ? 3 : share > 0.15 ? 2 : 1
}
