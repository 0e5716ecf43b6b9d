const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

/** Returns seconds as people read them, in the two largest units: `6 d`, `1 h 2 min`, `45 s`. */
export function durationText(seconds: number | bigint): string {
  let left = Math.abs(Math.trunc(Number(seconds)))
  const parts = UNITS.map(([unit, size]) => {
    const count = Math.floor(left / size)
    left %= size
    return { count, text: `${count} ${unit}` }
  })
  const first = parts.findIndex(({ count }) => count > 0)
  if (first === -1) return '0 s'
  return parts
    .slice(first, first + 2)
    .flatMap(({ count, text }) => (count > 0 ? [text] : []))
    .join(' ')
}
