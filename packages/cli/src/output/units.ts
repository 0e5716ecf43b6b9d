import { usdcText } from '@agent-trading-service/protocol/check-figures'
import { clean } from './clean.ts'

// How values look to people: amounts in USDC, times relative to now, shares in percent.

/** Fields in USDC base units that do not have USDC in their names. */
const USDC_FIELDS =
  /(^|\.)(allocation\.(cap|effectiveCap|used|available)|totalAssets|idleAssets|initialAllocation|maxAllocation)$/

/** Tells whether a field is in USDC base units; `path` is its name with those of the objects around it. */
export const isBaseUnits = (path: string): boolean => {
  const name = path.slice(path.lastIndexOf('.') + 1)
  // usdcAmount of a request and fields that end in Human are what a person asked for.
  return (/usdc/i.test(name) && name !== 'usdcAmount' && !name.endsWith('Human')) || USDC_FIELDS.test(path)
}

/** Returns basis points as percent, such as `-8 %`. */
export const percentText = (bps: number): string => `${bps / 100} %`

/** Tells whether a field is a time in Unix seconds. */
export const isTime = (path: string): boolean =>
  /(^|\.)(\w+At|timestamp|blockTimestamp|nextOpen|validUntil|closingSince|since|serverTime|suggestedDeadline)$/.test(
    path,
  )

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
  return clean(`${value}`)
}
