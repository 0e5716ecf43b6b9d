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

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

/** Formats a duration with its two largest units, such as `2 d 4 h`. */
export function formatDuration(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => Math.floor(seconds / size) > 0)
  if (first < 0) return '0 s'
  let left = Math.floor(seconds)
  const parts: string[] = []
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size)
    if (count > 0) parts.push(`${count} ${unit}`)
    left -= count * size
  }
  return parts.join(' ')
}
