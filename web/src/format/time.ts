const pad = (value: number) => `${value}`.padStart(2, '0')
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Formats Unix seconds in UTC, such as `2026-11-22 09:05:00 UTC`. */
export const formatUtc = (seconds: number): string =>
  `${new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** Formats Unix seconds in the reader's time zone, such as `22 Nov 2026, 10:05`; without the year if it is this one. */
export function formatLocal(seconds: number, { withSeconds = false } = {}): string {
  const date = new Date(seconds * 1000)
  const isThisYear = date.getFullYear() === new Date().getFullYear()
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}${isThisYear ? '' : ` ${date.getFullYear()}`}`
  return `${day}, ${pad(date.getHours())}:${pad(date.getMinutes())}${withSeconds ? `:${pad(date.getSeconds())}` : ''}`
}
