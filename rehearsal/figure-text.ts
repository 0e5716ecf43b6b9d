import { FIGURES, type Figure } from './requirement.ts'

// Figures as people read them, the same in the terminal and on the page, in any locale.

/** Returns an integer of millionths with two decimals, rounded towards zero, and thousands apart. */
function decimalText(millionths: bigint): string {
  const size = millionths < 0n ? -millionths : millionths
  const whole = `${size / 1_000_000n}`.replace(/\B(?=(\d{3})+$)/g, ',')
  const cents = `${(size % 1_000_000n) / 10_000n}`.padStart(2, '0')
  return `${millionths < 0n && size >= 10_000n ? '-' : ''}${whole}.${cents}`
}

/** Returns USDC base units in USDC. */
export const usdcText = (base: bigint): string => `${decimalText(base)} USDC`

/** Returns parts per million in percent. */
export const percentText = (ppm: bigint): string => `${decimalText(ppm * 100n)} %`

/** Returns a figure in its unit; a dash if it is not defined. */
export function figureText(figure: Figure, value: bigint | null): string {
  if (value === null) return '–'
  if (FIGURES[figure] === 'percent') return percentText(value)
  if (FIGURES[figure] === 'usdc') return usdcText(value)
  return value % 1_000_000n === 0n ? `${value / 1_000_000n}` : decimalText(value)
}

/** Returns a time in Unix seconds in UTC, such as `2026-03-02 14:35`. */
export const timeText = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')

/** Returns a name of the API in words, such as `Max trade size` for `maxTradeSize` and `Market closed`. */
export function inWords(name: string): string {
  const words = (
    name === name.toUpperCase() ? name.replaceAll('_', ' ') : name.replace(/(?=[A-Z])/g, ' ')
  ).toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Returns a blocker of a promotion without the name of the contract's error. */
export const withoutCode = (blocker: string): string => blocker.replace(/^\w+: /, '')

/** Returns a length of time in its two largest units, such as `2 d 4 h`. */
export function durationText(seconds: number): string {
  const units = [
    ['d', Math.floor(seconds / 86_400)],
    ['h', Math.floor(seconds / 3_600) % 24],
    ['min', Math.floor(seconds / 60) % 60],
  ] as const
  const first = units.findIndex(([, count]) => count > 0)
  if (first < 0) return `${Math.floor(seconds)} s`
  return units
    .slice(first, first + 2)
    .flatMap(([unit, count]) => (count > 0 ? [`${count} ${unit}`] : []))
    .join(' ')
}
