import { usdcText } from '@agent-trading-service/protocol/check-figures'
import { clean } from './clean.ts'

// How values look to people: amounts in USDC, times relative to now, shares in percent.

/** Fields in USDC base units that do not have USDC in their names. */
const USDC_FIELDS =
  /(^|\.)(allocation\.(cap|effectiveCap|used|available)|totalAssets|idleAssets|initialAllocation|maxAllocation)$/

/** Tells whether a field is in USDC base units; `path` is its name with those of the objects around it. */
export const isBaseUnits = (path: string): boolean => {
  const name = path.slice(path.lastIndexOf('.') + 1)
  // The amount of a request, and fields that end in Human, are in USDC already.
  return (/usdc/i.test(name) && !/(^|\.)body\.usdcAmount$|Human$/.test(path)) || USDC_FIELDS.test(path)
}

/** Tells whether a field is a time in Unix seconds. */
export const isTime = (path: string): boolean =>
  /(^|\.)(\w+At|at|t|day|\w*[tT]imestamp|nextOpen|\w+Until|\w+Since|since|serverTime|\w*[dD]eadline|(period|week)(Start|End)|(first|last)Sample|postsFrom|valid(After|Before)|settleableBefore|maxDrawdown\.(from|to))$/.test(
    path,
  )

/** What one percent is in the unit at the end of a field's name. */
const PERCENT = [
  ['Bps', 100],
  ['Ppm', 10_000],
  ['ppm', 10_000],
] as const

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const

/** Returns a time in Unix seconds relative to now, such as `5 min ago` or `in 2 h`. */
export function relativeTime(seconds: number, now = Date.now() / 1000): string {
  const difference = Math.round(seconds - now)
  const size = Math.abs(difference)
  const [length, unit] = UNITS.find(([each]) => size >= each) ?? [1, 's']
  const text = `${Math.floor(size / length)} ${unit}`
  return difference > 0 ? `in ${text}` : `${text} ago`
}

/** Returns a single value as people read it. */
export function valueText(value: string | number | boolean | null, path: string): string {
  if (value === null) return '-'
  const isInteger = /^-?\d{1,78}$/.test(`${value}`)
  if (isInteger && isBaseUnits(path)) return usdcText(BigInt(value as string))
  if (isInteger && isTime(path) && Number(value) > 1_000_000_000) return relativeTime(Number(value))
  const [, percent] = PERCENT.find(([unit]) => path.endsWith(unit)) ?? []
  if (isInteger && percent) return `${Number(value) / percent} %`
  // The decimals differ by token and are not part of the response.
  if (isInteger && /token(Amount|Out)$/i.test(path)) return `${value} base units`
  if (isInteger && path.endsWith('Milli')) return `${Number(value) / 1000}`
  return clean(`${value}`)
}
